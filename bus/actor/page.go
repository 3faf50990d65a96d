package actor

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"
)

// ServeHTTP answers with Info: as JSON, or as a tree for people when the query
// says format=text or the Accept header begins with text/plain. It is for the
// operator's listener: the reasons of failures are in it.
func (s *System) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	format := r.URL.Query().Get("format")
	if format == "" {
		format = accepted(r.Header.Get("Accept"))
	}
	var err error
	switch format {
	case "text":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		err = s.Info().writeTree(w)
	case "json":
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		err = e.Encode(s.Info())
	default:
		http.Error(w, "format must be json or text", http.StatusBadRequest)
	}
	if err != nil { // an Info can always be written: the client has gone away
		s.log.Debug("actors not sent", "error", err)
	}
}

// accepted is the format for an Accept header. What is preferred comes first in
// the headers that people and programs write, so weights are not looked at.
func accepted(header string) string {
	first, _, _ := strings.Cut(header, ",")
	if media, _, err := mime.ParseMediaType(first); err == nil && media == "text/plain" {
		return "text"
	}
	return "json"
}

// writeTree writes a line for the system and one for each actor below it.
func (i SystemInfo) writeTree(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s: %s, %d runners, %d queued\n", i.Name, i.State, i.Runners, i.Queued)
	if len(i.Actors) > 0 {
		fmt.Fprintln(t, "   ACTOR\tSTATE\tMAILBOX\tRECEIVED\tREFUSED\tDEAD\tCRASHES\tRESTARTS\tLAST FAILURE")
	}
	for n, a := range i.Actors {
		branch := "├─"
		if n == len(i.Actors)-1 {
			branch = "└─"
		}
		failure := "none"
		if !a.LastFailureAt.IsZero() {
			failure = a.LastFailureAt.UTC().Format(time.RFC3339) + " " + a.LastFailure
		}
		fmt.Fprintf(t, "%s %s\t%s\t%d/%d\t%d\t%d\t%d\t%d\t%d\t%s\n", branch, a.Name, a.State, a.Mailbox, a.MailboxCap,
			a.Received, a.Refused, a.DeadLetters.Total(), a.Crashes, a.Restarts, failure)
	}
	return t.Flush()
}
