package ws

// DefaultMessage is the value of Limits.Message when none is given: 1 MiB.
const DefaultMessage = 1 << 20

// maxControl is the longest payload of a control frame (RFC 6455 section 5.5).
const maxControl = 125

// Limits bounds what a client can make a Reader hold.
type Limits struct {
	// Message is the longest message in bytes, the sum of its fragments. The
	// header that announces more ends the connection with CodeTooBig, before
	// anything of that frame is stored. Zero and less mean DefaultMessage.
	Message int
}
