package keys

import (
	"testing"
	"time"
)

// TestRevisionsNeverGoBackwards: a replica that lags delivers what was.
func TestRevisionsNeverGoBackwards(t *testing.T) {
	d, err := NewDirectory(DirectoryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	var h hash
	rec := Record{ID: h.id(), Name: "x"}
	entry := func() *Entry { return d.entries[h] }

	if d.set(h, rec, true, 5) != nil || entry().Revoked() {
		t.Fatal("a new key is not good")
	}
	first := entry()
	if got := d.set(h, rec, false, 7); got != first || !first.Revoked() {
		t.Fatal("the end was not announced")
	}
	if d.set(h, rec, false, 8) != nil {
		t.Error("announced twice")
	}
	if d.set(h, rec, true, 6); !entry().Revoked() {
		t.Error("an older record brought the key back")
	}
	if d.set(h, rec, true, 9); entry().Revoked() || entry() == first || !first.Revoked() {
		t.Error("a key that is good again needs an entry of its own")
	}
	// In a bucket made anew, revision 1 is news.
	d.epoch(time.Unix(1, 0))
	if got := d.set(h, rec, false, 1); got == nil {
		t.Error("an end in the new bucket went unnoticed")
	}
}

// TestLoadForgetsWhatIsGone: what the bucket no longer has ends, unless it is newer
// than the load.
func TestLoadForgetsWhatIsGone(t *testing.T) {
	var ended []string
	d, err := NewDirectory(DirectoryConfig{OnChange: func(e *Entry) { ended = append(ended, e.Name()) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	static, err := d.AddStatic("development")
	if err != nil {
		t.Fatal(err)
	}
	d.load = 1
	d.set(hash{1}, Record{Name: "kept"}, true, 1)
	d.set(hash{2}, Record{Name: "gone"}, true, 2)
	d.set(hash{3}, Record{Name: "newer"}, true, 9)
	d.load = 2
	d.set(hash{1}, Record{Name: "kept"}, true, 1)
	d.loaded(5)
	if len(ended) != 1 || ended[0] != "gone" {
		t.Errorf("ended %v, want [gone]", ended)
	}
	if d.Len() != 3 || static.Revoked() {
		t.Errorf("%d known, static revoked %v", d.Len(), static.Revoked())
	}
}
