package child

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is the parent of TestOutlivesNobody when it is started as that.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == parentCommand {
		fmt.Fprintln(os.Stderr, beAParent())
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
