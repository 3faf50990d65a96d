package transcript_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/ommer/ommer/deploy/transcript"
)

var update = flag.Bool("update", false, "rewrite what is heard in testdata")

func files(t *testing.T) []*transcript.File {
	t.Helper()
	files, err := transcript.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestTranscripts(t *testing.T) {
	all := files(t)
	tallies := make([]transcript.Tally, len(all))
	t.Run("files", func(t *testing.T) {
		for i, f := range all {
			t.Run(strings.TrimPrefix(f.Path, "testdata/"), func(t *testing.T) {
				t.Parallel()
				before := f.Text()
				f.Play(t, newWorld(t), *update, &tallies[i])
				if after := f.Text(); *update && !t.Failed() && after != before {
					if err := os.WriteFile(f.Path, []byte(after), 0o644); err != nil {
						t.Error(err)
					}
				}
			})
		}
	})
	var total transcript.Tally
	for i := range tallies {
		total.Add(&tallies[i])
	}
	t.Log(&total)
}

// Every row has a conversation, and no conversation is about nothing.
func TestEveryRowHasAConversation(t *testing.T) {
	conversations := map[string]int{}
	total := 0
	for _, f := range files(t) {
		for _, c := range f.Conversations {
			conversations[c.Row]++
			total++
		}
	}
	rows := 0
	for _, table := range transcript.Rows {
		for _, row := range table.Rows {
			rows++
			if conversations[row] == 0 {
				t.Errorf("%s: no conversation about %q", table.Name, row)
			}
			delete(conversations, row)
		}
	}
	for row := range conversations {
		t.Errorf("there is no row %q", row)
	}
	t.Logf("%d rows, %d conversations", rows, total)
}

// What is written must hold by itself: an uncle that is heard hashes to its hash, is
// as large as it says, and is an uncle of a block of the chain.
func TestGoldenUnclesAreTrue(t *testing.T) {
	chain, err := transcript.Sample()
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, b := range append(chain.Blocks, chain.Side) {
		for _, u := range b.Uncles() {
			known = append(known, u.Hash().Hex())
		}
	}
	checked := 0
	for _, f := range files(t) {
		for line := range strings.Lines(f.Text()) {
			_, rest, found := strings.Cut(line, `"result":{`)
			for found && strings.HasPrefix(line, "<--") {
				var h types.Header
				var said struct {
					Hash            string            `json:"hash"`
					Size            string            `json:"size"`
					TotalDifficulty json.RawMessage   `json:"totalDifficulty"`
					Uncles          []json.RawMessage `json:"uncles"`
				}
				object, after, _ := strings.Cut(rest, "}")
				object = "{" + object + "}"
				if err := json.Unmarshal([]byte(object), &h); err != nil {
					t.Fatalf("%s: %v in %s", f.Path, err, line)
				}
				if err := json.Unmarshal([]byte(object), &said); err != nil {
					t.Fatalf("%s: %v in %s", f.Path, err, line)
				}
				size := types.NewBlockWithHeader(&h).Size()
				if said.Hash != h.Hash().Hex() || said.Size != fmt.Sprintf("0x%x", size) || string(said.TotalDifficulty) != "null" || said.Uncles == nil || len(said.Uncles) > 0 {
					t.Errorf("%s: it hashes to %v and is of %d bytes: %s", f.Path, h.Hash(), size, object)
				}
				if !slices.Contains(known, said.Hash) {
					t.Errorf("%s: not an uncle of the chain: %s", f.Path, object)
				}
				checked++
				_, rest, found = strings.Cut(after, `"result":{`)
			}
		}
	}
	if checked == 0 {
		t.Error("no uncle is heard")
	}
	t.Logf("%d uncles", checked)
}
