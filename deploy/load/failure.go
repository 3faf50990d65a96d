package load

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
)

// Failure is why a call has no right answer, or why a connection was not opened.
type Failure struct {
	// Kind is what failures are counted by, for example "timeout" or "HTTP status
	// 429". There are few of them.
	Kind string
	// Detail is what one of them said, the server's words last. A masker has seen it
	// before it leaves the package.
	Detail string
}

// Error returns both.
func (f *Failure) Error() string {
	if f.Detail == "" {
		return f.Kind
	}
	return f.Kind + ": " + f.Detail
}

// Kinds that stand for themselves. Others have a code behind them.
const (
	KindTimeout     = "timeout"             // no answer within the time for a request
	KindClosed      = "closed by server"    // without a close frame
	KindReset       = "connection reset"    //
	KindRefused     = "connection refused"  //
	KindNoPort      = "no local port left"  // more source addresses help
	KindSource      = "not a local address" // to connect from
	KindNoFile      = "too many open files" //
	KindName        = "host name not found" //
	KindConnect     = "cannot connect"      // of any other reason
	KindTLS         = "TLS handshake"       //
	KindCertificate = "TLS certificate"     // it cannot be verified
	KindProtocol    = "malformed response"  // neither HTTP nor WebSocket as it should be
	KindForm        = "no JSON-RPC answer"  //
	KindID          = "wrong id"            //
	KindWrong       = "wrong answer"        // another uncle than the one asked for, or none
	KindTwice       = "answered twice"      // one request
	KindUnsent      = "not sent in time"    // no connection was free for it until the end
	KindUnanswered  = "no answer until the end"
)

// unanswered is for a request that was given up before it timed out.
func unanswered() *Failure { return &Failure{KindUnanswered, ""} }

// wrongKinds are those that no server may ever cause, whatever its load.
var wrongKinds = map[string]bool{KindForm: true, KindID: true, KindWrong: true, KindTwice: true, KindProtocol: true}

// Wrong says whether it is one that no server may ever cause.
func (f *Failure) Wrong() bool { return wrongKinds[f.Kind] }

func httpStatus(status int, body []byte) *Failure {
	return &Failure{"HTTP status " + strconv.Itoa(status), quote(body)}
}

func handshakeStatus(status int, body []byte) *Failure {
	return &Failure{"handshake status " + strconv.Itoa(status), quote(body)}
}

func rpcError(code int, message string) *Failure {
	return &Failure{"JSON-RPC error " + strconv.Itoa(code), quote([]byte(message))}
}

func closedWith(code uint16, reason []byte) *Failure {
	return &Failure{"closed with " + strconv.Itoa(int(code)), quote(reason)}
}

func malformed(format string, args ...any) *Failure {
	return &Failure{KindProtocol, fmt.Sprintf(format, args...)}
}

// quote keeps the start of what a server sent, as it is: a masker makes it fit to be
// shown. It is longer than what is shown, so that no key is cut before it is masked.
func quote(b []byte) string {
	const most = 1024
	return string(b[:min(len(b), most)])
}

// broken says why an open connection failed.
func broken(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &Failure{KindTimeout, ""}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &Failure{KindClosed, ""}
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return &Failure{KindReset, err.Error()}
	default:
		return &Failure{KindClosed, err.Error()}
	}
}

// notConnected says why there is no TCP connection.
func notConnected(err error) *Failure {
	f := &Failure{KindConnect, err.Error()}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		f.Kind = KindTimeout
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		f.Kind = KindName
	}
	for number, kind := range map[syscall.Errno]string{
		syscall.ECONNREFUSED: KindRefused, syscall.ECONNRESET: KindReset, syscall.EMFILE: KindNoFile, syscall.ENFILE: KindNoFile,
		syscall.EADDRNOTAVAIL: KindNoPort, syscall.EADDRINUSE: KindNoPort,
	} {
		if errors.Is(err, number) {
			f.Kind = kind
		}
	}
	if errors.Is(err, syscall.EADDRNOTAVAIL) && isForeign(err) {
		f.Kind = KindSource
	}
	return f
}

// isForeign says whether an address to connect from is none of this machine's: nothing
// can listen on it either.
func isForeign(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok {
		return false
	}
	from, ok := op.Source.(*net.TCPAddr)
	if !ok || from == nil || from.IP == nil {
		return false
	}
	ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: from.IP})
	if err == nil {
		_ = ln.Close()
		return false
	}
	return errors.Is(err, syscall.EADDRNOTAVAIL)
}

// notSecured says why a TLS handshake failed.
func notSecured(err error) *Failure {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return &Failure{KindCertificate, err.Error()}
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return &Failure{KindTimeout, "in the TLS handshake"}
	}
	return &Failure{KindTLS, err.Error()}
}
