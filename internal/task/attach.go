package task

import (
	"context"
	"errors"
)

// ErrDetached is what a Stream returns after its other side has gone.
var ErrDetached = errors.New("the agent has gone")

// Stream is the connection of an agent that dialled in, one JSON text a
// message. Receive is called by one goroutine, Send by several. Both return
// ErrDetached, or an error that wraps it, when the other side is gone; Close
// ends both with a reason the other side is told.
type Stream interface {
	Send(ctx context.Context, message []byte) error
	Receive(ctx context.Context) ([]byte, error)
	Close(reason string)
}

// Attached is the agent a stream speaks for, as the door that authenticated
// it found out.
type Attached struct {
	AgentID string
	Name    string
	OwnerID string
	// Client is what the program calls itself.
	Client string
}

// Attacher takes the streams of agents that dial in. Attach returns when the
// stream or ctx ends, or when another stream of the same agent took its place;
// whoever calls it then closes the connection.
type Attacher interface {
	Attach(ctx context.Context, agent Attached, s Stream) error
}
