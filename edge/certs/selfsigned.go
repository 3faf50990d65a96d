package edge

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

// LoadTLS returns the server's TLS configuration for a certificate chain and its
// key in PEM files.
func LoadTLS(certFile, keyFile string) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("certificate %s, key %s: %w", certFile, keyFile, err)
	}
	return serverTLS(cert), nil
}

func serverTLS(cert tls.Certificate) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{cert},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"},
	}
}

// selfSignedFor is how long a self-signed certificate is good, and how long
// before its end it is made anew.
const (
	selfSignedFor   = 365 * 24 * time.Hour
	selfSignedRenew = 30 * 24 * time.Hour
)

// SelfSignedTLS returns a TLS configuration for local work: a certificate for
// localhost and the loopback addresses that signs itself. It is kept in dir, in
// cert.pem and key.pem, so that clients can be told to trust it once; certFile is
// the path to tell them.
func SelfSignedTLS(dir string) (config *tls.Config, certFile string, err error) {
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	switch {
	case err == nil && time.Until(cert.Leaf.NotAfter) > selfSignedRenew:
		return serverTLS(cert), certFile, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, "", fmt.Errorf("self-signed certificate in %s: %w (delete it to have a new one made)", dir, err)
	}
	certPEM, keyPEM, err := selfSign(time.Now())
	if err != nil {
		return nil, "", fmt.Errorf("self-signed certificate: %w", err)
	}
	if err = os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", err
	}
	// The key goes first: a certificate without its key would be refused next time.
	if err = os.WriteFile(keyFile, keyPEM, 0o600); err != nil {
		return nil, "", err
	}
	if err = os.WriteFile(certFile, certPEM, 0o644); err != nil {
		return nil, "", err
	}
	if cert, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		return nil, "", err
	}
	return serverTLS(cert), certFile, nil
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
