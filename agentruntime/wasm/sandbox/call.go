package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"agentsite/agentruntime/wasm/frame"
)

// grace is the time after its deadline in which a process must end a call, before the process is killed.
const grace = 80 * time.Millisecond

// runCall runs one call in a process. begun is false if the process died before it got the call.
func (c *child) runCall(ctx context.Context, config map[string]string, input []byte, h Host) (out []byte, begun bool,
	err error) {
	body, err := json.Marshal(frame.Start{Millis: c.limits.Run.Milliseconds(), Config: config, Input: input})
	if err != nil {
		return nil, true, err
	}
	if len(body) > frame.MaxBody {
		return nil, true, &Failure{frame.Failed, "The task is too long for a hosted program."}
	}
	id, call := c.addCall(h)
	defer c.removeCall(id)
	if err := c.sendFrame(frame.Frame{Kind: frame.Call, Call: id, Body: body}); err != nil {
		return nil, false, err
	}
	left, since := c.limits.Run+grace, time.Now()
	limit := time.NewTimer(left)
	defer limit.Stop()
	for {
		select {
		case f := <-call.frames:
			if f.Kind == frame.Done {
				return readDone(f.Body)
			}
			left -= time.Since(since)
			limit.Stop()
			if err := c.answerProgram(ctx, id, call, f, h); err != nil {
				return nil, true, err
			}
			if ctx.Err() != nil {
				return nil, true, c.cancelCall(ctx, id, call)
			}
			since = time.Now()
			limit.Reset(max(left, grace))
		case <-limit.C:
			c.endProcess(errHangs)
			return nil, true, errExpired()
		case <-c.dead:
			if errors.Is(c.err, errMemory) {
				return nil, true, &Failure{frame.Trapped, "The program used more memory than it may."}
			}
			return nil, true, c.err
		case <-ctx.Done():
			return nil, true, c.cancelCall(ctx, id, call)
		}
	}
}

func errExpired() error { return &Failure{frame.Expired, "The program used up its time."} }

// readDone reads the result of a call.
func readDone(b []byte) ([]byte, bool, error) {
	status, out, err := frame.SplitStatus(b)
	switch {
	case err != nil:
		return nil, true, err
	case status == frame.OK:
		return out, true, nil
	case status == frame.Expired:
		return nil, true, errExpired()
	}
	return nil, true, &Failure{status, string(out)}
}

// answerProgram runs a function of the portal for the program and sends the result.
func (c *child) answerProgram(ctx context.Context, id uint32, call *pending, f frame.Frame, h Host) error {
	name, arg, err := frame.SplitHost(f.Body)
	if err != nil {
		c.endProcess(fmt.Errorf("%w: %w", errProtocol, err))
		return err
	}
	out, err := h.Call(ctx, name, arg)
	body := frame.WithStatus(frame.OK, out)
	if err != nil {
		body = frame.WithStatus(frame.Failed, []byte(err.Error()))
	}
	c.noteAnswer(call)
	return c.sendFrame(frame.Frame{Kind: frame.Answer, Call: id, Body: body})
}

// cancelCall ends a call after the end of its context, and kills the process if it does not follow in time.
func (c *child) cancelCall(ctx context.Context, id uint32, call *pending) error {
	if c.sendFrame(frame.Frame{Kind: frame.Cancel, Call: id}) != nil {
		return context.Cause(ctx)
	}
	limit := time.NewTimer(grace)
	defer limit.Stop()
	for {
		select {
		case f := <-call.frames:
			if f.Kind == frame.Done {
				return context.Cause(ctx)
			}
		case <-limit.C:
			c.endProcess(errHangs)
			return context.Cause(ctx)
		case <-c.dead:
			return context.Cause(ctx)
		}
	}
}
