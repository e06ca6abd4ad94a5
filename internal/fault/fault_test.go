package fault_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"agentsite/internal/fault"
)

func TestAs_UnknownErrorsAreInternalAndSayNothing(t *testing.T) {
	t.Parallel()
	for _, err := range []error{io.ErrUnexpectedEOF, context.Canceled, fmt.Errorf("dial db with password hunter2")} {
		f := fault.As(err)
		if f.Kind != fault.Internal || strings.Contains(f.Safe, err.Error()) || !errors.Is(f, err) {
			t.Errorf("%v became %+v", err, f)
		}
		if fault.Is(err, fault.Internal) {
			t.Errorf("%v was never said to be internal", err)
		}
	}
	if fault.As(nil) != nil || fault.Is(nil, fault.Internal) {
		t.Error("nil is a fault")
	}
}

func TestAs_FindsTheFaultBelowWrapping(t *testing.T) {
	t.Parallel()
	f := fault.New(fault.NotFound, "There is no agent %q.", "x%d")
	if f.Safe != `There is no agent "x%d".` {
		t.Error(f.Safe)
	}
	for _, err := range []error{f, fmt.Errorf("load: %w", f), errors.Join(io.EOF, fmt.Errorf("again: %w", f))} {
		if fault.As(err) != f || !fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) {
			t.Errorf("%v is not recognised", err)
		}
	}
}

func TestWrap_KeepsTheCauseFromTheUser(t *testing.T) {
	t.Parallel()
	f := fault.Wrap(fault.Unavailable, io.ErrClosedPipe, "Try %s.", "later")
	if f.Safe != "Try later." || !errors.Is(f, io.ErrClosedPipe) || !strings.Contains(f.Error(), "closed pipe") {
		t.Errorf("%+v: %v", f, f)
	}
	if l := fault.Limited(3*time.Second, "Wait."); l.Kind != fault.RateLimited || l.RetryAfter != 3*time.Second || l.Unwrap() != nil {
		t.Errorf("%+v", l)
	}
}

func TestCheck_NamesEveryFieldOnceInOrder(t *testing.T) {
	t.Parallel()
	var c fault.Check
	c.Field(true, "title", "is fine")
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	c.Field(false, "name", "use %d characters", 2)
	c.Field(false, "name", "a later fault")
	c.Field(false, "kind", "100%% wrong")
	f := fault.As(c.Err())
	if f.Kind != fault.Invalid || f.Safe != "kind: 100% wrong; name: use 2 characters" || len(f.Fields) != 2 || f.Fields["name"] != "use 2 characters" {
		t.Errorf("%+v", f)
	}
	if got := f.Error(); !strings.HasPrefix(got, "invalid: ") || strings.Index(got, "kind: ") > strings.Index(got, "name: ") {
		t.Error(got)
	}
}

func TestField_NamesTheFieldInTheMessage(t *testing.T) {
	t.Parallel()
	f := fault.Field("limit", "use 1 to 100% of %d")
	if f.Kind != fault.Invalid || f.Safe != "limit: use 1 to 100% of %d" || len(f.Fields) != 1 || f.Fields["limit"] != "use 1 to 100% of %d" {
		t.Errorf("%+v", f)
	}
}
