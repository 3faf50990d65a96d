package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A slow upstream is slow for lookups, and not for who asks how it is.
func TestSlowed(t *testing.T) {
	asked := make(chan struct{}, 10)
	node := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{} }))
	defer node.Close()
	h, err := slowed(node.URL, 0)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(h)
	defer proxy.Close()
	addr := strings.TrimPrefix(proxy.URL, "http://")
	ask := func(ctx context.Context, path string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, proxy.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	}
	if err := tellDelay(t.Context(), addr, time.Hour); err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := ask(impatient, "/"); !errors.Is(err, context.DeadlineExceeded) || len(asked) > 0 {
		t.Errorf("asked although it is slow: %v", err)
	}
	if err := ask(t.Context(), healthPath); err != nil {
		t.Error(err)
	}
	if err := tellDelay(t.Context(), addr, 0); err != nil {
		t.Fatal(err)
	}
	if err := ask(t.Context(), "/"); err != nil || len(asked) != 1 {
		t.Errorf("it is still slow: %v", err)
	}
}
