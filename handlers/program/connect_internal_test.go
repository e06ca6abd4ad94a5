package program

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A token is shown to its account for the page of its agent, and for a short time.
func TestShownTokens_AreForOneAccountAndOneAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s shownTokens
		s.keep("ann", "laptop", "ags_1")
		for _, c := range []struct{ account, agent, want string }{
			{"ann", "laptop", "ags_1"}, {"ann", "desktop", ""}, {"bob", "laptop", ""}, {"", "", ""},
		} {
			if got := s.find(c.account, c.agent); got != c.want {
				t.Errorf("%s finds %q for %s, want %q", c.account, got, c.agent, c.want)
			}
		}
		s.keep("ann", "desktop", "ags_2")
		if a, b := s.find("ann", "laptop"), s.find("ann", "desktop"); a != "" || b != "ags_2" {
			t.Errorf("after a second token: %q and %q", a, b)
		}
		time.Sleep(maxTokenShown - time.Millisecond)
		if got := s.find("ann", "desktop"); got != "ags_2" {
			t.Errorf("before the end it is %q", got)
		}
		time.Sleep(time.Millisecond)
		if got := s.find("ann", "desktop"); got != "" {
			t.Errorf("at the end it is %q", got)
		}
		s.keep("bob", "laptop", "ags_3")
		if len(s.last) != 1 {
			t.Errorf("%d tokens are kept, one of which is over", len(s.last))
		}
	})
}

func TestShownTokens_AreBounded(t *testing.T) {
	t.Parallel()
	var s shownTokens
	for i := range maxShownTokens + 10 {
		s.keep(fmt.Sprint("account ", i), "laptop", "ags_")
		if i > maxShownTokens-3 {
			if len(s.last) > maxShownTokens || s.find(fmt.Sprint("account ", i), "laptop") == "" {
				t.Fatalf("after %d: %d tokens", i+1, len(s.last))
			}
		}
	}
}
