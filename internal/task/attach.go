package task

import (
	"context"
	"errors"
)

// ErrDetached is returned by a Stream after its remote side has disconnected.
var ErrDetached = errors.New("the agent has gone")

// Stream is the connection of an agent that connected to this portal, one JSON text per message.
// Receive is called by one goroutine, Send by several. Both return ErrDetached, or an error that wraps
// it, when the remote side has disconnected. Close ends both and sends the reason to the remote side.
type Stream interface {
	Send(ctx context.Context, message []byte) error
	Receive(ctx context.Context) ([]byte, error)
	Close(reason string)
}

// Attached identifies the agent of a stream, after the link endpoint checked its token.
type Attached struct {
	AgentID string
	Name    string
	OwnerID string
	// Client is the name that the program gave itself in its hello, for logs.
	Client string
}

// Attacher takes the streams of agents that connect to this portal. Attach returns when the stream or
// ctx ends, or when another stream of the same agent replaced it. The caller then closes the
// connection.
type Attacher interface {
	Attach(ctx context.Context, agent Attached, s Stream) error
}
