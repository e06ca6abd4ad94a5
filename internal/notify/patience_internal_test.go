package notify

import (
	"slices"
	"testing"
	"time"
)

func TestPause_GrowsToAnHour(t *testing.T) {
	t.Parallel()
	var got []time.Duration
	for n := range 10 {
		got = append(got, retryPause(n+1, 0.5))
	}
	want := []time.Duration{5 * time.Second, 15 * time.Second, 45 * time.Second, 135 * time.Second, 405 * time.Second, 1215 * time.Second, time.Hour, time.Hour, time.Hour, time.Hour}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if a, b := retryPause(1, 0), retryPause(1, 1); a != 4*time.Second || b != 6*time.Second {
		t.Errorf("%v %v", a, b)
	}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	if got := nextAttempt(now, 1, 10*time.Minute).Sub(now); got != 10*time.Minute {
		t.Errorf("asked for 10 minutes, got %v", got)
	}
	if got := nextAttempt(now, 1, 10*time.Hour).Sub(now); got != time.Hour {
		t.Errorf("asked for 10 hours, got %v", got)
	}
}

// The vector is that of the specification's own libraries.
func TestSign_IsStandardWebhooks(t *testing.T) {
	t.Parallel()
	got, err := signBody("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if err != nil || got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Errorf("%q %v", got, err)
	}
	for _, bad := range []string{"", "whsec_", "whsec_*"} {
		if _, err := signBody(bad, "id", time.Now(), nil); err == nil {
			t.Errorf("%q signs", bad)
		}
	}
	if a, b := newSecret(), newSecret(); a == b || len(a) < 40 {
		t.Errorf("%q %q", a, b)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Duration{"": 0, "soon": 0, "-5": 0, "90": 90 * time.Second, "99999999": time.Hour, "99999999999999999999": 0,
		"Thu, 01 Jan 2026 12:02:00 GMT": 2 * time.Minute, "Thu, 01 Jan 2026 11:00:00 GMT": 0, "Fri, 01 Jan 2027 12:00:00 GMT": time.Hour} {
		if got := retryAfter(in, now); got != want {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
}

// What is bounded is what somebody has to pay for.
func TestHostOf(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"https://a.evil.example.com/x": "example.com", "https://B.EXAMPLE.com.:8443": "example.com", "https://one.github.io/h": "one.github.io",
		"https://10.0.0.1:9000/": "10.0.0.1", "https://[2001:db8::1]:9/": "2001:db8::1", "http://localhost:8080/": "localhost", "https://com": "com"} {
		if got := hostOf(in); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
