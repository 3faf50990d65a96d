package bus

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
)

// LinkConfig says how to reach the bus.
type LinkConfig struct {
	// Name is one token of letters, digits, '-' and '_', up to 64 characters. It
	// is shown by the NATS server's connection list and begins every reply
	// subject (_R.<Name>.>), so that a user can be allowed to read only its own.
	Name string
	// URLs are the servers, nats:// or tls://, at least one. User information in
	// them is used and never logged.
	URLs []string
	// SeedFile is a file with an nkey seed, CredsFile one with a JWT and its seed.
	// At most one of them.
	SeedFile, CredsFile string
	// CAFile verifies the servers instead of the system's roots. CertFile and
	// KeyFile present a client certificate; both or neither.
	CAFile, CertFile, KeyFile string
	// Hold is how many bytes may be published while there is no connection, to be
	// sent when there is one again. The default 0 holds nothing: publishing fails,
	// which is what a Client wants, since it asks again by itself. A link that
	// serves does well with a few MiB, so that answers survive a lost server.
	Hold int
	// Logger gets one line per change of state. Nil logs nothing.
	Logger *slog.Logger

	inOrder bool // the servers are tried as they are listed
}

// maxURLs bounds the list of servers.
const maxURLs = 64

func (c LinkConfig) options() ([]nats.Option, error) {
	if err := checkToken("Name", c.Name); err != nil {
		return nil, err
	}
	if len(c.URLs) == 0 || len(c.URLs) > maxURLs {
		return nil, fmt.Errorf("%w: URLs (--nats) must name 1 to %d servers", ErrConfig, maxURLs)
	}
	for i, s := range c.URLs {
		if err := checkURL(s); err != nil {
			return nil, fmt.Errorf("%w: URLs: server %d of %d: %w", ErrConfig, i+1, len(c.URLs), err)
		}
	}
	hold := -1
	if c.Hold > 0 {
		hold = c.Hold
	}
	opts := []nats.Option{
		nats.Name(c.Name),
		nats.CustomInboxPrefix("_R." + c.Name),
		nats.Timeout(dialTimeout),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(maxPings),
		nats.FlusherTimeout(writeTimeout),
		nats.ReconnectOnFlusherError(),
		nats.ReconnectBufSize(hold),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectJitter, reconnectJitter),
		nats.RetryOnFailedConnect(true),
		// A server whose accounts are being changed refuses for a moment; giving up
		// then would need a restart by hand.
		nats.IgnoreAuthErrorAbort(),
		// Every subject that is published to was made by this package.
		nats.SkipSubjectValidation(),
	}
	if c.inOrder {
		opts = append(opts, nats.DontRandomize())
	}
	return c.secure(opts)
}

// secure adds what proves either side's identity. Files are read once here, so
// that a mistake is found at the start and names the field.
func (c LinkConfig) secure(opts []nats.Option) ([]nats.Option, error) {
	if c.SeedFile != "" && c.CredsFile != "" {
		return nil, fmt.Errorf("%w: SeedFile (--nats-nkey) and CredsFile (--nats-creds) exclude each other", ErrConfig)
	}
	if c.SeedFile != "" {
		o, err := nats.NkeyOptionFromSeed(c.SeedFile)
		if err != nil {
			return nil, configError("SeedFile (--nats-nkey) "+c.SeedFile, err)
		}
		opts = append(opts, o)
	}
	if c.CredsFile != "" {
		if _, err := os.Stat(c.CredsFile); err != nil {
			return nil, configError("CredsFile (--nats-creds)", err)
		}
		opts = append(opts, nats.UserCredentials(c.CredsFile))
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return nil, fmt.Errorf("%w: CertFile (--nats-cert) and KeyFile (--nats-key) need each other", ErrConfig)
	}
	var o nats.Options
	if c.CAFile != "" {
		ca := nats.RootCAs(c.CAFile)
		if err := ca(&o); err != nil {
			return nil, configError("CAFile (--nats-ca) "+c.CAFile, err)
		}
		if _, err := o.RootCAsCB(); err != nil {
			return nil, configError("CAFile (--nats-ca) "+c.CAFile, err)
		}
		opts = append(opts, ca)
	}
	if c.CertFile != "" {
		cert := nats.ClientCert(c.CertFile, c.KeyFile)
		if err := cert(&o); err != nil {
			return nil, configError("CertFile (--nats-cert) "+c.CertFile, err)
		}
		if _, err := o.TLSCertCB(); err != nil {
			return nil, configError("CertFile (--nats-cert) "+c.CertFile, err)
		}
		opts = append(opts, cert)
	}
	return opts, nil
}

// checkURL refuses what nats.Connect could not use. Its errors quote nothing of
// the URL, which may hold a password.
func checkURL(s string) error {
	if strings.ContainsAny(s, ", ") {
		return errors.New("more than one URL in one place")
	}
	if !strings.Contains(s, "://") {
		s = "nats://" + s
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" {
		return errors.New("not a URL like nats://host:4222")
	}
	switch u.Scheme {
	case "nats", "tls", "ws", "wss":
		return nil
	default:
		return errors.New("the scheme must be nats, tls, ws or wss")
	}
}

// redact is a server's URL without user information, path or query.
func redact(s string) string {
	if !strings.Contains(s, "://") {
		s = "nats://" + s
	}
	u, err := url.Parse(s)
	if err != nil {
		return "?"
	}
	return u.Scheme + "://" + u.Host
}

func redactAll(urls []string) string {
	out := make([]string, len(urls))
	for i, s := range urls {
		out[i] = redact(s)
	}
	return strings.Join(out, ",")
}

func configError(what string, err error) error {
	return fmt.Errorf("%w: %s: %w", ErrConfig, what, err)
}
