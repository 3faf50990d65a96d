package ws_test

import (
	"fmt"

	"github.com/ommer/ommer/edge/ws"
)

// A session reads what arrived and writes what is to be sent.
func ExampleReader_Next() {
	pool := ws.NewPool(ws.Limits{}) // one for all connections
	reader := ws.NewReader(pool)    // one for each

	var out []byte
	arrived := join(ping("are you there?"), begin(ws.OpText, "hel"), end("lo"), closing(1000, "bye"))
	for in := arrived; len(in) > 0; {
		n, event, payload, err := reader.Next(in)
		in = in[n:]
		if err != nil {
			out = ws.AppendClose(out, err.Code, err.Reason)
			break
		}
		switch event {
		case ws.Text, ws.Binary:
			fmt.Printf("message: %s\n", payload)
			out = ws.AppendFrame(out, ws.OpText, []byte("answer"))
		case ws.Ping:
			out = ws.AppendFrame(out, ws.OpPong, payload)
		case ws.Close:
			code, reason := ws.ParseClose(payload)
			fmt.Printf("closed: %d %s\n", code, reason)
			out = ws.AppendClose(out, code, "")
		}
	}
	reader.Release()
	fmt.Printf("sent: %q\n", out)
	// Output:
	// message: hello
	// closed: 1000 bye
	// sent: "\x8a\x0eare you there?\x81\x06answer\x88\x02\x03\xe8"
}
