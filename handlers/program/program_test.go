package program

import (
	"fmt"
	"log/slog"
	"testing"

	"agentsite/handlers/address"
	"agentsite/internal/fault"
)

// One address must not hold all places, with which it would keep everyone else from the program.
func TestBeginDownload_LeavesPlacesToOtherAddresses(t *testing.T) {
	t.Parallel()
	p := New(address.Portal{}, nil, nil, nil, slog.New(slog.DiscardHandler))
	var ends []func()
	for range maxOwn {
		done, err := p.beginDownload("192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, done)
	}
	if _, err := p.beginDownload("192.0.2.1"); !fault.Is(err, fault.RateLimited) {
		t.Errorf("one address downloads more than %d times at once: %v", maxOwn, err)
	}
	for i := maxOwn; i < maxDownloads; i++ {
		if _, err := p.beginDownload(fmt.Sprint("other ", i)); err != nil {
			t.Fatalf("download %d: %v", i, err)
		}
	}
	if _, err := p.beginDownload("198.51.100.1"); !fault.Is(err, fault.RateLimited) {
		t.Errorf("more than %d downloads at once: %v", maxDownloads, err)
	}
	for _, done := range ends {
		done()
	}
	for range maxOwn {
		if _, err := p.beginDownload("192.0.2.1"); err != nil {
			t.Errorf("after the end of the downloads: %v", err)
		}
	}
}
