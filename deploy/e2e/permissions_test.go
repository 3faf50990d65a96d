//go:build e2e

package e2e

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// TestPermissions holds users.conf to what it promises: everything works with it, and
// what a stolen nkey could try beyond that does not.
func TestPermissions(t *testing.T) {
	_, with, _ := sepolia(t)
	s := newSite(t)
	n := s.server("nats-1")
	n.start("single.conf")
	operator := s.login("operator", n)
	key := s.createKey(operator)
	s.startWorker("worker-1", startNode(t, "").url, s.login("worker-1", n))
	e := s.startEdge("edge-1", s.login("edge-1", n))
	s.waitReady()

	t.Run("everything works", func(t *testing.T) {
		c := s.httpCaller(e, true, key)
		for _, q := range questions(with, 20) {
			if err := ask(t.Context(), c, q); err != nil {
				t.Fatal(err)
			}
		}
		stdout, stderr, code := s.keys(operator, "create", "--name", "short-lived")
		if code != 0 {
			t.Fatal(stderr)
		}
		c = s.httpCaller(e, true, strings.TrimSpace(stdout))
		eventually(t, promised, "the new key to be good", func() error { return ask(t.Context(), c, question{block: &with[0]}) })
		if stdout, stderr, code := s.keys(operator, "list"); code != 0 || !strings.Contains(stdout, "short-lived") {
			t.Errorf("list: exit code %d, %s %s", code, stdout, stderr)
		}
		if _, stderr, code := s.keys(operator, "revoke", "short-lived"); code != 0 {
			t.Error(stderr)
		}
		eventually(t, promised, "the key to be refused", func() error {
			if err := ask(t.Context(), c, question{block: &with[0]}); statusOf(err) != http.StatusUnauthorized {
				return fmt.Errorf("got %w, want status 401", err)
			}
			return nil
		})
		for _, p := range []*process{e.process, s.workers[0].process} {
			if _, log := p.output(); strings.Contains(strings.ToLower(log), "permissions violation") {
				t.Errorf("%s was refused something: %s", p.name, log)
			}
		}
	})

	users := map[string]*nats.Conn{}
	for _, name := range siteUsers {
		inbox := "_R." + name
		if name == "operator" {
			inbox = "_INBOX"
		}
		users[name] = s.connect(name, inbox, n)
	}
	publish := func(user, subject string) error {
		nc := users[user]
		if err := nc.Publish(subject, nil); err != nil {
			return err
		}
		return errors.Join(nc.Flush(), lastError(nc, subject))
	}
	subscribe := func(user, subject, queue string) error {
		nc := users[user]
		sub, err := nc.QueueSubscribeSync(subject, queue)
		if err != nil {
			return err
		}
		err = errors.Join(nc.Flush(), lastError(nc, subject))
		_ = sub.Unsubscribe() // a refused one is gone already
		return err
	}
	const (
		question = "ommer.v1.sepolia.eth_getUncleByBlockNumberAndIndex"
		record   = "$KV.ommer_keys.0000000000000000000000000000000000000000000000000000000000000000"
	)
	for _, c := range []struct {
		who, what, user string
		publish, sub    string
		queue           string
		may             bool
	}{
		{who: "an edge", what: "asks", user: "edge-1", publish: question, may: true},
		{who: "an edge", what: "asks one worker", user: "edge-1", publish: "ommer.w.worker-1.v1.sepolia.x", may: true},
		{who: "an edge", what: "reads its answers", user: "edge-1", sub: "_R.edge-1.x.*", may: true},
		{who: "an edge", what: "reads what workers announce", user: "edge-1", sub: "ommer.load.*", may: true},
		{who: "an edge", what: "reads another's answers", user: "edge-1", sub: "_R.edge-2.>"},
		{who: "an edge", what: "reads all answers", user: "edge-1", sub: "_R.>"},
		{who: "an edge", what: "reads everything", user: "edge-1", sub: ">"},
		{who: "an edge", what: "reads inboxes", user: "edge-1", sub: "_INBOX.>"},
		{who: "an edge", what: "reads questions", user: "edge-1", sub: "ommer.v1.>"},
		{who: "an edge", what: "takes questions", user: "edge-1", sub: "ommer.v1.sepolia.*", queue: "lookup"},
		{who: "an edge", what: "takes a worker's questions", user: "edge-1", sub: "ommer.w.worker-1.>"},
		{who: "an edge", what: "answers another edge", user: "edge-1", publish: "_R.edge-2.x.y"},
		{who: "an edge", what: "answers the operator", user: "edge-1", publish: "_R.keys.x"},
		{who: "an edge", what: "announces a worker", user: "edge-1", publish: "ommer.load.worker-1"},
		{who: "an edge", what: "writes a key", user: "edge-1", publish: record},
		{who: "an edge", what: "hears of keys that are written", user: "edge-1", sub: "$KV.ommer_keys.*", may: true},
		{who: "an edge", what: "reads other buckets", user: "edge-1", sub: "$KV.>"},
		{who: "an edge", what: "asks for another stream", user: "edge-1", publish: "$JS.API.STREAM.INFO.other"},
		{who: "an edge", what: "plays a service", user: "edge-1", sub: "$SRV.PING"},
		{who: "a worker", what: "takes questions", user: "worker-1", sub: "ommer.v1.sepolia.*", queue: "lookup", may: true},
		{who: "a worker", what: "takes its own questions", user: "worker-1", sub: "ommer.w.worker-1.v1.sepolia.*", queue: "worker-1", may: true},
		{who: "a worker", what: "answers an edge", user: "worker-1", publish: "_R.edge-1.x.y", may: true},
		{who: "a worker", what: "answers by hand", user: "worker-1", publish: "_INBOX.x.y", may: true},
		{who: "a worker", what: "announces itself", user: "worker-1", publish: "ommer.load.worker-1", may: true},
		{who: "a worker", what: "plays its service", user: "worker-1", sub: "$SRV.STATS.ommer.x", may: true},
		{who: "a worker", what: "listens to all questions", user: "worker-1", sub: "ommer.v1.>"},
		{who: "a worker", what: "takes questions beside the others", user: "worker-1", sub: "ommer.v1.sepolia.*", queue: "mine"},
		{who: "a worker", what: "takes another's questions", user: "worker-1", sub: "ommer.w.worker-2.>"},
		{who: "a worker", what: "asks", user: "worker-1", publish: question},
		{who: "a worker", what: "asks another worker", user: "worker-1", publish: "ommer.w.worker-2.v1.sepolia.x"},
		{who: "a worker", what: "reads answers", user: "worker-1", sub: "_R.edge-1.>"},
		{who: "a worker", what: "announces another", user: "worker-1", publish: "ommer.load.worker-2"},
		{who: "a worker", what: "writes a key", user: "worker-1", publish: record},
		{who: "a worker", what: "hears of keys", user: "worker-1", sub: "$KV.ommer_keys.*"},
		{who: "a worker", what: "reads keys", user: "worker-1", publish: "ommer.keys.create.x.y"},
		{who: "the operator", what: "asks", user: "operator", publish: question},
		{who: "the operator", what: "answers", user: "operator", sub: "ommer.v1.sepolia.*", queue: "lookup"},
		{who: "the operator", what: "reads answers", user: "operator", sub: "_R.edge-1.>"},
		{who: "the operator", what: "makes another stream", user: "operator", publish: "$JS.API.STREAM.CREATE.other"},
		{who: "the monitor", what: "asks workers about themselves", user: "monitor", publish: "$SRV.STATS", may: true},
		{who: "the monitor", what: "asks", user: "monitor", publish: question},
		{who: "the monitor", what: "plays a service", user: "monitor", sub: "$SRV.PING"},
		{who: "a leaf", what: "asks", user: "leaf-1", publish: question, may: true},
		{who: "a leaf", what: "takes questions", user: "leaf-1", sub: "ommer.v1.sepolia.*", queue: "lookup"},
		{who: "a leaf", what: "writes a key", user: "leaf-1", publish: record},
		{who: "a leaf", what: "reads keys", user: "leaf-1", publish: "ommer.keys.create.x.y"},
		{who: "a leaf", what: "reads an edge's answers", user: "leaf-1", sub: "_R.edge-1.>"},
	} {
		t.Run(c.who+" "+c.what, func(t *testing.T) {
			var err error
			if c.publish != "" {
				err = publish(c.user, c.publish)
			} else {
				err = subscribe(c.user, c.sub, c.queue)
			}
			if c.may && err != nil {
				t.Errorf("refused: %v", err)
			}
			if !c.may && !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("got %v, want a refusal", err)
			}
		})
	}

	t.Run("nobody but the operator changes the bucket", func(t *testing.T) {
		before, _, _ := s.keys(operator, "list")
		for _, user := range siteUsers {
			if user == "operator" || user == "system" {
				continue
			}
			for _, request := range []string{
				"STREAM.CREATE.KV_ommer_keys", "STREAM.UPDATE.KV_ommer_keys", "STREAM.DELETE.KV_ommer_keys",
				"STREAM.PURGE.KV_ommer_keys", "STREAM.MSG.DELETE.KV_ommer_keys", "STREAM.RESTORE.KV_ommer_keys",
				"STREAM.SNAPSHOT.KV_ommer_keys", "STREAM.PEER.REMOVE.KV_ommer_keys",
			} {
				if err := publish(user, "$JS.API."+request); !errors.Is(err, nats.ErrPermissionViolation) {
					t.Errorf("%s %s: got %v, want a refusal", user, request, err)
				}
			}
		}
		if after, _, _ := s.keys(operator, "list"); after != before {
			t.Errorf("before\n%s\nafter\n%s", before, after)
		}
	})

	// What answers an edge writes with its own rights, wherever the edge has the answer
	// sent: JetStream's answers and deliveries must not reach the bucket.
	t.Run("an edge has JetStream write for it", func(t *testing.T) {
		op := users["operator"]
		before := s.bucket(op)
		nc := users["edge-1"]
		for i, target := range []string{record, "$JS.API.STREAM.PURGE.KV_ommer_keys", "$JS.API.STREAM.DELETE.KV_ommer_keys"} {
			for _, headersOnly := range []bool{true, false} {
				name := fmt.Sprintf("c%d%v", i, headersOnly)
				subject := "$JS.API.CONSUMER.CREATE.KV_ommer_keys." + name + ".$KV.ommer_keys.>"
				request := fmt.Appendf(nil, `{"stream_name":"KV_ommer_keys","config":{"name":%q,"deliver_subject":%q,"deliver_policy":"all",`+
					`"filter_subject":"$KV.ommer_keys.>","ack_policy":"none","headers_only":%v,"mem_storage":true,"num_replicas":1}}`, name, target, headersOnly)
				for _, reply := range []string{target, "_R.edge-1.attack"} {
					if err := errors.Join(nc.PublishRequest(subject, reply, request), nc.PublishRequest("$JS.API.STREAM.INFO.KV_ommer_keys", reply, nil)); err != nil {
						t.Error(err)
					}
				}
			}
		}
		if _, err := nc.Request("$JS.API.STREAM.INFO.KV_ommer_keys", nil, soon); err != nil {
			t.Error(err) // it is answered after the others
		}
		if _, stderr, code := s.keys(operator, "create", "--name", "fence"); code != 0 {
			t.Error(stderr)
		}
		want := bucket{LastSeq: before.LastSeq + 1, Messages: before.Messages + 1}
		if after := s.bucket(op); after != want {
			t.Errorf("before %+v, after one write of the operator %+v", before, after)
		}
	})
}

// bucket is the state of the bucket of keys.
type bucket struct {
	LastSeq  uint64 `json:"last_seq"`
	Messages uint64 `json:"messages"`
}

func (s *site) bucket(operator *nats.Conn) bucket {
	s.tb.Helper()
	m, err := operator.Request("$JS.API.STREAM.INFO.KV_ommer_keys", nil, soon)
	if err != nil {
		s.tb.Fatal(err)
	}
	var info struct {
		State bucket `json:"state"`
	}
	if err := json.Unmarshal(m.Data, &info); err != nil || info.State.Messages == 0 {
		s.tb.Fatalf("%v in %s", err, m.Data)
	}
	return info.State
}

// lastError is the refusal of a subject that a connection was told of.
func lastError(nc *nats.Conn, subject string) error {
	if err := nc.LastError(); err != nil && strings.Contains(err.Error(), `"`+subject+`"`) {
		return err
	}
	return nil
}

// TestServersTrustNobody tries the ports of a server with the certificates of others.
func TestServersTrustNobody(t *testing.T) {
	s := newSite(t)
	n := s.server("nats-1")
	s.cluster("west", "gateway.conf", []*natsServer{n},
		"NATS_HOME=true", "NATS_REGION_1=west", "NATS_GATEWAY_1=tls://"+n.region, "NATS_REGION_2=east", "NATS_GATEWAY_2=tls://"+freeAddr(t))
	s.certificate("server", "nats-2", "localhost")
	roots := x509.NewCertPool()
	authority, err := os.ReadFile(s.file("servers-ca.pem"))
	if err != nil || !roots.AppendCertsFromPEM(authority) {
		t.Fatal("no authority", err)
	}
	// What a server says first on a port and what it says after the handshake differs:
	// INFO comes before TLS. A refused certificate shows with the first read.
	knock := func(addr, as string) error {
		config := &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12}
		if as != "" {
			pair, err := tls.LoadX509KeyPair(s.file(as+".pem"), s.file(as+".key"))
			if err != nil {
				t.Fatal(err)
			}
			config.Certificates = []tls.Certificate{pair}
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(soon))
		if addr == n.clients || addr == n.leaves {
			if _, err := readLine(c); err != nil {
				t.Fatal(err)
			}
		}
		secure := tls.Client(c, config)
		if err := secure.Handshake(); err != nil {
			return err
		}
		if _, err := secure.Write([]byte("PING\r\n")); err != nil {
			return err
		}
		_, err = secure.Read(make([]byte, 1))
		return err
	}
	for _, c := range []struct {
		port, addr, as string
		opens          bool
	}{
		{"clients", n.clients, "edge-1", true},
		{"clients", n.clients, "", false},
		{"clients", n.clients, "nats-2", false},
		{"routes", n.routes, "nats-2", true},
		{"routes", n.routes, "edge-1", false},
		{"routes", n.routes, "", false},
		{"gateways", n.region, "nats-2", true},
		{"gateways", n.region, "edge-1", false},
		{"leaf nodes", n.leaves, "leaf-1", true},
		{"leaf nodes", n.leaves, "", false},
	} {
		t.Run(c.port+" as "+cmp.Or(c.as, "nobody"), func(t *testing.T) {
			err := knock(c.addr, c.as)
			refused := err != nil && strings.Contains(err.Error(), "remote error: tls:")
			if refused == c.opens {
				t.Errorf("got %v, want it to open: %v", err, c.opens)
			}
		})
	}
}

// readLine reads one line and nothing more.
func readLine(r io.Reader) (string, error) {
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := r.Read(b); err != nil || b[0] == '\n' {
			return string(line), err
		}
		line = append(line, b[0])
	}
}
