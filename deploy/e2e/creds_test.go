//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// issuer makes what nsc makes: an operator's accounts, and credentials of their users.
type issuer struct {
	t        *testing.T
	dir      string
	operator nkeys.KeyPair
}

func (i *issuer) pair(create func() (nkeys.KeyPair, error)) (pair nkeys.KeyPair, public string) {
	i.t.Helper()
	pair, err := create()
	if err != nil {
		i.t.Fatal(err)
	}
	if public, err = pair.PublicKey(); err != nil {
		i.t.Fatal(err)
	}
	return pair, public
}

func (i *issuer) encode(c jwt.Claims, with nkeys.KeyPair) string {
	i.t.Helper()
	token, err := c.Encode(with)
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}

// account makes an account; change fills it in.
func (i *issuer) account(name string, change func(*jwt.AccountClaims)) (pair nkeys.KeyPair, public, token string) {
	i.t.Helper()
	pair, public = i.pair(nkeys.CreateAccount)
	claims := jwt.NewAccountClaims(public)
	claims.Name = name
	change(claims)
	return pair, public, i.encode(claims, i.operator)
}

// user writes the credentials of a user, with permissions, or with those of the role that
// it is given by if they are nil.
func (i *issuer) user(name, account string, by nkeys.KeyPair, may *jwt.Permissions) (file string) {
	i.t.Helper()
	pair, public := i.pair(nkeys.CreateUser)
	claims := jwt.NewUserClaims(public)
	claims.Name = name
	claims.IssuerAccount = account
	if may == nil {
		claims.UserPermissionLimits = jwt.UserPermissionLimits{}
	} else {
		claims.Permissions = *may
	}
	seed, err := pair.Seed()
	if err != nil {
		i.t.Fatal(err)
	}
	creds, err := jwt.FormatUserConfig(i.encode(claims, by), seed)
	if err != nil {
		i.t.Fatal(err)
	}
	file = filepath.Join(i.dir, name+".creds")
	if err := os.WriteFile(file, creds, 0o600); err != nil {
		i.t.Fatal(err)
	}
	return file
}

// role is a signing key whose users all get these permissions; {{name()}} is the user's.
func (i *issuer) role(name string, publish, subscribe []string) (nkeys.KeyPair, *jwt.UserScope) {
	i.t.Helper()
	pair, public := i.pair(nkeys.CreateAccount)
	scope := jwt.NewUserScope()
	scope.Key, scope.Role = public, name
	scope.Template.Pub.Allow, scope.Template.Sub.Allow = publish, subscribe
	return pair, scope
}

// TestCredentials has users of an operator's accounts, as JWTs: with them one role
// serves all edges, and no server knows a user.
func TestCredentials(t *testing.T) {
	_, with, _ := sepolia(t)
	i := &issuer{t: t, dir: t.TempDir()}
	operator, operatorID := i.pair(nkeys.CreateOperator)
	i.operator = operator
	_, systemID, system := i.account("SYS", func(*jwt.AccountClaims) {})
	edges, edgeRole := i.role("edge", []string{
		"ommer.v1.>", "ommer.w.>", "$JS.API.STREAM.INFO.KV_ommer_keys", "$JS.API.CONSUMER.CREATE.KV_ommer_keys.>",
		"$JS.API.CONSUMER.DELETE.KV_ommer_keys.*", "$JS.FC.KV_ommer_keys.>",
	}, []string{"_R.{{name()}}.>", "ommer.load.*", "$KV.ommer_keys.*"})
	// A role has no queue groups: the server drops them from its template.
	worker := &jwt.Permissions{
		Pub: jwt.Permission{Allow: jwt.StringList{"_R.>", "_INBOX.>", "ommer.load.worker-1"}},
		Sub: jwt.Permission{Allow: jwt.StringList{"ommer.v1.> lookup", "ommer.w.worker-1.>", "ommer.load.worker-1", "$SRV.>", "_R.worker-1.>"}},
	}
	account, accountID, token := i.account("OMMER", func(c *jwt.AccountClaims) {
		c.SigningKeys.AddScopedSigner(edgeRole)
		c.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: -1, MemoryStorage: -1, Streams: -1, Consumer: -1}
	})
	claims := jwt.NewOperatorClaims(operatorID)
	claims.SystemAccount = systemID

	f := newFleet(t)
	config := filepath.Join(i.dir, "server.conf")
	text := fmt.Sprintf("operator: %s\nresolver: MEMORY\nresolver_preload: {\n%s: %s\n%s: %s\n}\n",
		i.encode(claims, operator), accountID, token, systemID, system)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f.startNATS("--config", config)
	creds := func(file string) []string { return []string{"--nats", f.natsURL(), "--nats-creds", file} }

	s := &site{fleet: f}
	key := s.createKey(creds(i.user("keys", accountID, account, &jwt.Permissions{})))
	s.startWorker("worker-1", startNode(t, "").url, creds(i.user("worker-1", accountID, account, worker)))
	e := s.startEdge("edge-1", creds(i.user("edge-1", accountID, edges, nil)))
	s.waitReady()
	for _, q := range questions(with, 20) {
		if err := ask(t.Context(), s.httpCaller(e, true, key), q); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("a name that is another's", func(t *testing.T) {
		// The role lets it read _R.edge-2 only, so its answers never come.
		wrong := s.startEdge("edge-3", creds(i.user("edge-2", accountID, edges, nil)))
		eventually(t, soon, "the edge to say what it may not", func() error {
			if _, log := wrong.output(); !strings.Contains(log, "Permissions Violation for Subscription to \\\"_R.edge-3.") {
				return fmt.Errorf("its log: %s", log)
			}
			return nil
		})
		if err := wrong.ready(); err == nil {
			t.Error("it is ready")
		}
	})
}
