//go:build e2e

package e2e

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// certificates are an authority of the test's own and the certificate it gave to
// the edges.
type certificates struct {
	tb                testing.TB
	authority         *x509.Certificate
	authorityKey      *ecdsa.PrivateKey
	authorityFile     string // for clients in other processes
	certFile, keyFile string
	roots             *x509.CertPool
}

// newCertificates makes an authority and a certificate for localhost, good for an
// hour.
func newCertificates(tb testing.TB) *certificates {
	tb.Helper()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	must(err)
	authority, err = x509.ParseCertificate(authorityDER)
	must(err)
	dir := tb.TempDir()
	c := &certificates{
		tb: tb, authority: authority, authorityKey: authorityKey,
		authorityFile: filepath.Join(dir, "authority.pem"), roots: x509.NewCertPool(),
		certFile: filepath.Join(dir, "cert.pem"), keyFile: filepath.Join(dir, "key.pem"),
	}
	must(os.WriteFile(c.authorityFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authorityDER}), 0o600))
	c.roots.AddCert(authority)
	c.renew(2)
	return c
}

// renew writes another certificate for the edges over the one before, with a key of
// its own, as a renewal hook does: first the one file, then the other.
func (c *certificates) renew(serial int64) {
	c.tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.tb.Fatal(err)
	}
	c.issue(serial, key, c.certFile, c.keyFile)
}

// issue writes a certificate for an edge that has this key.
func (c *certificates) issue(serial int64, key crypto.Signer, certFile, keyFile string) {
	c.tb.Helper()
	must := func(err error) {
		c.tb.Helper()
		if err != nil {
			c.tb.Fatal(err)
		}
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "edge"},
		NotBefore: c.authority.NotBefore, NotAfter: c.authority.NotAfter,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, c.authority, key.Public(), c.authorityKey)
	must(err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(err)
	must(os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leafDER}), 0o600))
	must(os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
}
