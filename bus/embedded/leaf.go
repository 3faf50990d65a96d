package embedded

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

const (
	// leafPing and leafPings find a cluster that has gone without a word within six
	// seconds: until then questions go there.
	leafPing  = 2 * time.Second
	leafPings = 2
	// leafTimeout bounds each step of joining.
	leafTimeout = 2 * time.Second
)

// Leaf joins the server to a cluster as a leaf node: who is on the server also reaches
// who is on the cluster, as far as the cluster lets the leaf's user. Whoever answers on
// the server itself goes first. Streams and buckets stay where they are: each side keeps
// its own keys. The server starts without the cluster, and tries to join for ever.
type Leaf struct {
	// Name is that of the leaf's JetStream domain, one token.
	Name string
	// URLs are where the cluster takes leaf nodes, nats://host:7422 or tls://.
	URLs []string
	// SeedFile is a file with the nkey seed to sign in with.
	SeedFile string
	// CAFile verifies the cluster instead of the system's roots. CertFile and KeyFile
	// present a certificate; both or neither.
	CAFile, CertFile, KeyFile string
}

func (l Leaf) apply(o *server.Options) error {
	remote := &server.RemoteLeafOpts{FirstInfoTimeout: leafTimeout, DialTimeout: leafTimeout, TLSTimeout: leafTimeout.Seconds()}
	for _, s := range l.URLs {
		u, err := url.Parse(s)
		if err != nil || u.Hostname() == "" || u.Port() == "" || u.Scheme != "nats" && u.Scheme != "tls" {
			return fmt.Errorf("%w: Leaf.URLs: not a URL like tls://host:7422", ErrStart)
		}
		remote.TLS = remote.TLS || u.Scheme == "tls"
		remote.URLs = append(remote.URLs, u)
	}
	if l.SeedFile != "" {
		text, err := os.ReadFile(l.SeedFile)
		if err != nil {
			return fmt.Errorf("%w: Leaf.SeedFile: %w", ErrStart, err)
		}
		pair, err := nkeys.ParseDecoratedNKey(text)
		if err != nil {
			return fmt.Errorf("%w: Leaf.SeedFile: %s: %w", ErrStart, l.SeedFile, err)
		}
		seed, err := pair.Seed()
		if err != nil {
			return fmt.Errorf("%w: Leaf.SeedFile: %s: %w", ErrStart, l.SeedFile, err)
		}
		remote.Nkey = string(seed)
	}
	var err error
	if remote.TLSConfig, err = l.tls(); err != nil {
		return fmt.Errorf("%w: %w", ErrStart, err)
	}
	remote.TLS = remote.TLS || remote.TLSConfig != nil
	o.LeafNode.Remotes = []*server.RemoteLeafOpts{remote}
	o.LeafNode.ReconnectInterval = leafTimeout / 2
	o.JetStreamDomain = l.Name
	o.PingInterval, o.MaxPingsOut = leafPing, leafPings
	return nil
}

// tls is nil when nothing is given that it would be made of.
func (l Leaf) tls() (*tls.Config, error) {
	if l.CAFile == "" && l.CertFile == "" && l.KeyFile == "" {
		return nil, nil //nolint:nilnil // the system's roots do
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if l.CAFile != "" {
		pem, err := os.ReadFile(l.CAFile)
		if err != nil {
			return nil, fmt.Errorf("Leaf.CAFile: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("Leaf.CAFile: %s has no certificate", l.CAFile)
		}
	}
	if (l.CertFile == "") != (l.KeyFile == "") {
		return nil, errors.New("Leaf.CertFile and Leaf.KeyFile need each other")
	}
	if l.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(l.CertFile, l.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("Leaf.CertFile: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
