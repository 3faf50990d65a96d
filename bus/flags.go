package bus

import (
	"log/slog"
)

// URL is the address of a NATS server, as a flag.
type URL string

// UnmarshalText checks the URL. Its errors repeat nothing of it.
func (u *URL) UnmarshalText(text []byte) error {
	if err := checkURL(string(text)); err != nil {
		return err
	}
	*u = URL(text)
	return nil
}

// Flags are the options by which a process reaches the bus, tagged for the
// command line.
type Flags struct {
	NATS      []URL  `name:"nats" placeholder:"URL,..." default:"nats://127.0.0.1:4222" help:"NATS servers to connect to; any of them will do."`
	NATSNkey  string `name:"nats-nkey" placeholder:"FILE" type:"existingfile" help:"File with the nkey seed to sign in with."`
	NATSCreds string `name:"nats-creds" placeholder:"FILE" type:"existingfile" help:"File with the JWT credentials to sign in with."`
	NATSCA    string `name:"nats-ca" placeholder:"FILE" type:"existingfile" help:"Certificates that verify the servers, instead of the system's."`
	NATSCert  string `name:"nats-cert" placeholder:"FILE" type:"existingfile" help:"Client certificate to present; needs --nats-key."`
	NATSKey   string `name:"nats-key" placeholder:"FILE" type:"existingfile" help:"Key of the client certificate."`
}

// Link is the configuration of a link with the given name.
func (f Flags) Link(name string, log *slog.Logger) LinkConfig {
	urls := make([]string, len(f.NATS))
	for i, u := range f.NATS {
		urls[i] = string(u)
	}
	return LinkConfig{
		Name: name, URLs: urls,
		SeedFile: f.NATSNkey, CredsFile: f.NATSCreds,
		CAFile: f.NATSCA, CertFile: f.NATSCert, KeyFile: f.NATSKey,
		Logger: log,
	}
}
