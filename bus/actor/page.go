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

// Page shows systems to an operator.
type Page []*System

// ServeHTTP answers with the Info of each system: as a JSON list, or as trees for people
// when the query says format=text or the Accept header begins with text/plain. It is for
// the operator's listener: the reasons of failures are in it.
func (p Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	format := r.URL.Query().Get("format")
	if format == "" {
		format = accepted(r.Header.Get("Accept"))
	}
	infos := make([]SystemInfo, len(p))
	for i, s := range p {
		infos[i] = s.Info()
	}
	// An Info can always be written: what fails is that the client has gone away.
	switch format {
	case "text":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		for _, i := range infos {
			_ = i.writeTree(w)
		}
	case "json":
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		_ = e.Encode(infos)
	default:
		http.Error(w, "format must be json or text", http.StatusBadRequest)
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
