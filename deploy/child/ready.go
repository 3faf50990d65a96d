package child

import (
	"context"
	"fmt"
	"net"
	"net/http"
)

// Accepts says whether somebody listens on addr: nil if so.
func Accepts(ctx context.Context, addr string) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return c.Close()
}

// Ready asks the admin listener at addr whether its process is ready: nil if so.
func Ready(ctx context.Context, addr string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz says %s", resp.Status)
	}
	return nil
}
