package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/ommer/ommer/deploy/devnode"
)

// upstreamCommand makes this program an upstream node: deploy/devnode, and before it
// what can make it slow.
const upstreamCommand = "upstream"

// delayPath is where an upstream is told how long it has to wait before each answer.
const delayPath = "/chaos/delay"

// healthPath is where it says that it is up, without delay.
const healthPath = "/chaos/health"

// runUpstream serves a file of blocks at an address until ctx ends.
func runUpstream(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return usageError{errors.New("chaos upstream FILE ADDR")}
	}
	node, err := devnode.New(devnode.Config{Blocks: args[0], Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	nodeEnded := make(chan error, 1)
	go func() { nodeEnded <- node.Run(ctx) }()
	handler, err := slowed(node.URL(), distance)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: args[1], Handler: handler, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // whoever waits is cut off
	err = server.ListenAndServe()
	cancel()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, <-nodeEnded)
}

// distance is how long an upstream takes when it is well, so that at any time some
// questions are on their way.
const distance = 20 * time.Millisecond

// slowed is a proxy that delays each request: so long at first, then as it was told.
func slowed(target string, usual time.Duration) (http.Handler, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	var delay atomic.Int64
	delay.Store(int64(usual))
	proxy := httputil.NewSingleHostReverseProxy(u)
	mux := http.NewServeMux()
	mux.HandleFunc("PUT "+delayPath, func(w http.ResponseWriter, r *http.Request) {
		d, err := time.ParseDuration(r.URL.Query().Get("for"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		delay.Store(int64(d))
	})
	mux.HandleFunc("GET "+healthPath, func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if pause(r.Context(), time.Duration(delay.Load())) {
			proxy.ServeHTTP(w, r)
		}
	})
	return mux, nil
}

// tellDelay tells the upstream at addr how long to wait.
func tellDelay(ctx context.Context, addr string, d time.Duration) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+addr+delayPath+"?for="+d.String(), nil)
	if err != nil {
		return err
	}
	resp, err := prober.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s says %s", delayPath, resp.Status)
	}
	return nil
}
