package deploy

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/ommer/ommer/edge"
	"github.com/ommer/ommer/edge/overload"
)

// LIMITS.md is the one table of limits: no flag may be missing from it.
func TestLimitsAreListed(t *testing.T) {
	text, err := os.ReadFile("LIMITS.md")
	if err != nil {
		t.Fatal(err)
	}
	words := regexp.MustCompile(`([a-z])([A-Z])`)
	for prefix, fields := range map[string]reflect.Type{
		"--limit-":    reflect.TypeFor[edge.Limits](),
		"--timeout-":  reflect.TypeFor[edge.Timeouts](),
		"--overload-": reflect.TypeFor[overload.Limits](),
	} {
		for i := range fields.NumField() {
			f := fields.Field(i)
			flag := "`" + prefix + strings.ToLower(words.ReplaceAllString(f.Name, "$1-$2")) + "`"
			if !strings.Contains(string(text), flag) {
				t.Errorf("LIMITS.md does not list %s", flag)
			}
			if f.Tag.Get("help") == "" || f.Tag.Get("default") == "" {
				t.Errorf("%s has no help or no default", flag)
			}
		}
	}
}
