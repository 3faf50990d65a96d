package nio

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// BenchmarkFlood asks over one open connection while another process opens new ones
// without end, with as many handshakes computing as is said. The certificate is an
// RSA one: its signature takes ten times that of an ECDSA one.
func BenchmarkFlood(b *testing.B) {
	for _, handshakes := range []int{max(1, runtime.GOMAXPROCS(0)/2), runtime.GOMAXPROCS(0), 512} {
		b.Run(fmt.Sprintf("computing=%d", handshakes), func(b *testing.B) {
			l := start(b, Config{Handshakes: handshakes})
			addr := listen(b, l, rsaTLS(), echoing(nil))
			conn := dial(b, addr, 0)
			_ = conn.SetDeadline(time.Time{})
			c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
			exchange(b, c, []byte("hello"))

			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), roleVar+"=flood", "NIO_TEST_ADDR="+addr)
			cmd.Stderr = os.Stderr
			in, err := cmd.StdinPipe()
			if err != nil {
				b.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			defer func() {
				_ = in.Close()
				if err := cmd.Wait(); err != nil {
					b.Errorf("the flood: %v", err)
				}
			}()
			accepted := func() float64 { return testutil.ToFloat64(l.metrics.accepted[overTLS]) }
			eventually(b, "the flood", func() bool { return accepted() > 100 })

			var took []time.Duration
			msg, began, before := fill(400), time.Now(), accepted()
			for b.Loop() {
				asked := time.Now()
				exchange(b, c, msg)
				took = append(took, time.Since(asked))
			}
			shakes := accepted() - before
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
			b.ReportMetric(shakes/time.Since(began).Seconds(), "handshakes/s")
		})
	}
}

func rsaTLS() *tls.Config {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

// flood is the other process of BenchmarkFlood. It ends with standard input.
func flood() {
	const atOnce = 256
	ctx, end := contextOfInput()
	defer end()
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for ctx.Err() == nil {
				c, err := net.DialTimeout("tcp", os.Getenv("NIO_TEST_ADDR"), 20*time.Second)
				if err != nil {
					return
				}
				over := context.AfterFunc(ctx, func() { _ = c.Close() })
				secure := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
				if _, err := secure.Write([]byte("x")); err == nil {
					_, _ = io.ReadFull(secure, make([]byte, 1))
				}
				over()
				_ = c.(*net.TCPConn).SetLinger(0) // no ports in TIME_WAIT
				_ = c.Close()
			}
		})
	}
	wg.Wait()
}
