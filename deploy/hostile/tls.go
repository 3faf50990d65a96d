package main

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"time"
)

// clientHello is a whole ClientHello, as crypto/tls sends it.
func clientHello(cfg *tls.Config) []byte {
	var r recorder
	_ = tls.Client(&r, cfg).Handshake() // it fails when it wants to read
	return r.Bytes()
}

// recorder is a connection that keeps what is written and from which nothing comes.
type recorder struct {
	bytes.Buffer
	net.Conn
}

func (r *recorder) Write(p []byte) (int, error) { return r.Buffer.Write(p) }
func (*recorder) Read([]byte) (int, error)      { return 0, errors.New("nothing to read") }
func (*recorder) Close() error                  { return nil }
func (*recorder) SetDeadline(time.Time) error   { return nil }

// Types of TLS records and of a handshake message, RFC 8446 sections 5.1 and 4.
const (
	recordHandshake = 22
	recordData      = 23
	keyUpdate       = 24
)

// sending is the sending half of a TLS 1.3 connection with TLS_AES_128_GCM_SHA256. It
// is there for what crypto/tls never sends: a key update of its own accord.
type sending struct {
	secret []byte
	aead   cipher.AEAD
	iv     []byte
	seq    uint64
}

// takeOver does a handshake and takes the connection over from crypto/tls, which tells
// the secret through its key log. Nothing has been sent under it yet.
func takeOver(ctx context.Context, tcp net.Conn, cfg *tls.Config) (*sending, error) {
	var log bytes.Buffer
	cfg = cfg.Clone()
	cfg.KeyLogWriter, cfg.MinVersion = &log, tls.VersionTLS13
	conn := tls.Client(tcp, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	if suite := conn.ConnectionState().CipherSuite; suite != tls.TLS_AES_128_GCM_SHA256 {
		return nil, fmt.Errorf("the edge has chosen %s", tls.CipherSuiteName(suite))
	}
	for line := range bytes.Lines(log.Bytes()) {
		fields := bytes.Fields(line)
		if len(fields) == 3 && string(fields[0]) == "CLIENT_TRAFFIC_SECRET_0" {
			secret, err := hex.DecodeString(string(fields[2]))
			if err != nil {
				return nil, err
			}
			s := &sending{}
			return s, s.rekey(secret)
		}
	}
	return nil, errors.New("no secret in the key log")
}

// rekey begins anew with a traffic secret (RFC 8446 section 7.3).
func (s *sending) rekey(secret []byte) error {
	key, err1 := expand(secret, "key", 16)
	iv, err2 := expand(secret, "iv", 12)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	aead, err := cipher.NewGCM(block)
	*s = sending{secret: secret, aead: aead, iv: iv}
	return err
}

// expand is HKDF-Expand-Label with no context (RFC 8446 section 7.1).
func expand(secret []byte, label string, length int) ([]byte, error) {
	label = "tls13 " + label
	info := binary.BigEndian.AppendUint16(nil, uint16(length))
	info = append(append(info, byte(len(label))), label...)
	return hkdf.Expand(sha256.New, secret, string(append(info, 0)), length)
}

// record is a protected record (RFC 8446 section 5.2).
func (s *sending) record(kind byte, content []byte) []byte {
	nonce := bytes.Clone(s.iv)
	seq := binary.BigEndian.AppendUint64(nil, s.seq)
	for i := range seq {
		nonce[4+i] ^= seq[i]
	}
	s.seq++
	head := binary.BigEndian.AppendUint16([]byte{recordData, 3, 3}, uint16(len(content)+1+s.aead.Overhead()))
	return s.aead.Seal(head, nonce, append(bytes.Clone(content), kind), head)
}

// update is a key update that asks the edge for its own. What follows is under the
// next secret.
func (s *sending) update() []byte {
	const requested = 1
	p := s.record(recordHandshake, []byte{keyUpdate, 0, 0, 1, requested})
	next, err := expand(s.secret, "traffic upd", sha256.Size)
	if err == nil {
		err = s.rekey(next)
	}
	if err != nil {
		panic(err) // lengths that are constants here
	}
	return p
}

// updates is n of them.
func (s *sending) updates(n int) (p []byte) {
	for range n {
		p = append(p, s.update()...)
	}
	return p
}
