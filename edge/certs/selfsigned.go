package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// selfSignedFor is how long a self-signed certificate is good, and how long
// before its end it is made anew.
const (
	selfSignedFor   = 365 * 24 * time.Hour
	selfSignedRenew = 30 * 24 * time.Hour
)

// SelfSigned returns a pair for local work: a certificate for localhost and the
// loopback addresses that signs itself. It is kept in dir, in cert.pem and key.pem,
// so that clients can be told to trust it once.
func SelfSigned(dir string) (Pair, error) {
	pair := Pair{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	cert, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
	switch {
	case err == nil && time.Until(cert.Leaf.NotAfter) > selfSignedRenew:
		return pair, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return Pair{}, fmt.Errorf("self-signed certificate in %s: %w (delete it to have a new one made)", dir, err)
	}
	certPEM, keyPEM, err := selfSign(time.Now())
	if err != nil {
		return Pair{}, fmt.Errorf("self-signed certificate: %w", err)
	}
	if err = os.MkdirAll(dir, 0o700); err != nil {
		return Pair{}, err
	}
	// The key goes first: a certificate without its key would be refused next time.
	if err = os.WriteFile(pair.Key, keyPEM, 0o600); err != nil {
		return Pair{}, err
	}
	return pair, os.WriteFile(pair.Cert, certPEM, 0o644)
}

func selfSign(now time.Time) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "localhost", Organization: []string{"Ommer, self-signed"}},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(selfSignedFor),
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true, // so that clients accept it as its own authority
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), nil
}
