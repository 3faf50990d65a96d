package edge_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/edge"
)

// An edge that has not read the keys does not know that one is wrong: it says so in a
// way that clients try again after.
func TestKeysNotRead(t *testing.T) {
	link, err := bus.Dial(bus.LinkConfig{Name: "e", URLs: []string{"nats://127.0.0.1:1"}}) // nobody is there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	unread, err := keys.NewDirectory(keys.DirectoryConfig{Link: link})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unread.Close)
	f := start(t, func(c *edge.Config) { c.Keys = unread })
	resp, err := http.Post("http://"+f.HTTP().String()+"/v3/perhaps-a-good-key", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%s with Retry-After %q, want 429 and a time", resp.Status, resp.Header.Get("Retry-After"))
	}
}
