package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/jsonrpc"
)

// Every code has a name of its own, and callers see what SEMANTICS promises.
func TestErrorReply(t *testing.T) {
	const overloaded = `{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"limit exceeded",` +
		`"data":{"reason":"overloaded","backoff_seconds":1}}}`
	const internal = `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}`
	tests := []struct {
		code  schema.Code
		name  string
		reply string
	}{
		{schema.OK, "ok", internal},
		{schema.Internal, "internal", internal},
		{schema.Timeout, "timeout", `{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"request timed out"}}`},
		{schema.Overloaded, "overloaded", overloaded},
		{schema.Pruned, "pruned", `{"jsonrpc":"2.0","id":1,"error":{"code":4444,"message":"pruned history unavailable"}}`},
		{schema.Draining, "draining", overloaded},
		{schema.NoWorkers, "no-workers", internal},
		{schema.Unsupported, "unsupported", internal},
		{schema.Unavailable, "unavailable", `{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"request timed out"}}`},
		{schema.Unavailable + 1, "internal", internal},
		{255, "internal", internal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.code.String(); got != tt.name {
				t.Errorf("name of %d is %q, want %q", tt.code, got, tt.name)
			}
			e := &schema.Error{Code: tt.code, Detail: "secret"}
			got := jsonrpc.AppendError(nil, []byte("1"), e.Reply())
			if string(got) != tt.reply || !json.Valid(got) {
				t.Errorf("callers see %s, want %s", got, tt.reply)
			}
		})
	}
}

func TestErrorText(t *testing.T) {
	if got, want := (&schema.Error{Code: schema.Pruned}).Error(), "pruned"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := (&schema.Error{Code: schema.Pruned, Detail: "node a"}).Error(), "pruned: node a"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
