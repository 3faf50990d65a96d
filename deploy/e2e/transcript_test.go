//go:build e2e

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/ommer/ommer/deploy/transcript"
)

// TestTranscripts plays the conversations that deploy/transcript plays in process.
func TestTranscripts(t *testing.T) {
	files, err := transcript.ReadDir(filepath.Join("..", "transcript", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	var tally transcript.Tally
	for _, f := range files {
		t.Run(filepath.Base(f.Path), func(t *testing.T) { f.Play(t, w, false, &tally) })
	}
	t.Log(&tally)
}
