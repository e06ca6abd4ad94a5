package weborigin

import "testing"

func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST": true, "shop.localhost": true, "127.0.0.1": true, "127.9.8.7": true, "::1": true,
		"[::1]": true, "::ffff:127.0.0.1": true,
		"": false, "0.0.0.0": false, "10.0.0.1": false, "localhost.example": false, "notlocalhost": false,
		"127.0.0.1.nip.io": false, "localtest.me": false, "2130706433": false, "127.1": false, "::": false,
		"localhost:80": false, "127.0.0.1:80": false,
	} {
		if got := IsLoopback(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}
