package keys

import (
	"errors"
	"hash/crc32"
	"math/big"
	"strings"
	"testing"
)

func TestNewKeysAreWellFormedAndDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		k := New()
		if len(k) != 55 || !strings.HasPrefix(k, "ommer_") {
			t.Fatalf("malformed: %q", k)
		}
		if err := Check(k); err != nil {
			t.Fatal(err)
		}
		if seen[k] {
			t.Fatal("the same key twice")
		}
		seen[k] = true
	}
}

// The written form is relied on by scanners: it must not change.
func TestFormOfAKey(t *testing.T) {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	k := New()
	n := new(big.Int)
	for _, c := range []byte(k[49:]) {
		n.Mul(n, big.NewInt(62)).Add(n, big.NewInt(int64(strings.IndexByte(digits, c))))
	}
	if want := crc32.ChecksumIEEE([]byte(k[:49])); n.Uint64() != uint64(want) {
		t.Errorf("the check is %d, want %d", n, want)
	}
	// The greatest secret fits, and the smallest is padded.
	top := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	back := new(big.Int)
	for _, c := range []byte(base62(new(big.Int).Set(top), 43)) {
		back.Mul(back, big.NewInt(62)).Add(back, big.NewInt(int64(strings.IndexByte(digits, c))))
	}
	if back.Cmp(top) != 0 {
		t.Error("2^256-1 does not fit")
	}
	if got, want := base62(big.NewInt(61), 3), "00z"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCheckFindsTypos(t *testing.T) {
	good := New()
	for i := range len(good) {
		b := []byte(good)
		if b[i]++; b[i] == good[i] {
			continue
		}
		if err := Check(string(b)); !errors.Is(err, ErrMalformed) {
			t.Errorf("character %d changed: got %v", i, err)
		}
	}
	for _, c := range []struct{ name, key string }{
		{"empty", ""}, {"prefix alone", "ommer_"}, {"short", good[:54]}, {"long", good + "0"}, {"swapped", good[:20] + good[21:22] + good[20:21] + good[22:]},
	} {
		if c.name == "swapped" && good[20] == good[21] {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			err := Check(c.key)
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("got %v", err)
			}
			if len(c.key) > 6 && strings.Contains(err.Error(), c.key[6:]) {
				t.Error("the error repeats the key")
			}
		})
	}
}
