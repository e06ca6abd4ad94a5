package main

import (
	"context"
	"fmt"
	"iter"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveSample runs a sample server, written as the documentation of the protocol's SDK shows. It must
// not do more than that, because a slower sample would make the portal look better.
func serveSample(protocol string) error {
	mux := http.NewServeMux()
	switch protocol {
	case "a2a":
		mux.Handle("/invoke", a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(echo{})))
	case "mcp":
		server := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
		mcp.AddTool(server, &mcp.Tool{Name: "greet", Description: "say hi"}, greet)
		of := func(*http.Request) *mcp.Server { return server }
		// This handler has sessions, so it serves the legacy versions of MCP only.
		mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(of, nil))
		mux.Handle("/modern", mcp.NewStreamableHTTPHandler(of, &mcp.StreamableHTTPOptions{Stateless: true}))
	default:
		return fmt.Errorf("there is no sample of %q", protocol)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: mux}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	go func() { <-ctx.Done(); srv.Close() }()
	fmt.Printf("ready http://%s\n", l.Addr())
	if err := srv.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// echo is an agent that answers with the text of the message. It makes a complete task in the SDK's
// store, which is in memory.
type echo struct{}

// Execute implements a2asrv.AgentExecutor.
func (echo) Execute(_ context.Context, at *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		_ = yield(a2a.NewSubmittedTask(at, at.Message), nil) &&
			yield(a2a.NewStatusUpdateEvent(at, a2a.TaskStateWorking, nil), nil) &&
			yield(a2a.NewStatusUpdateEvent(at, a2a.TaskStateCompleted, a2a.NewMessage(a2a.MessageRoleAgent, at.Message.Parts...)), nil)
	}
}

// Cancel implements a2asrv.AgentExecutor.
func (echo) Cancel(_ context.Context, at *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewStatusUpdateEvent(at, a2a.TaskStateCanceled, nil), nil)
	}
}

type greeting struct {
	Name string `json:"name" jsonschema:"the person to greet"`
}

func greet(_ context.Context, _ *mcp.CallToolRequest, in greeting) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hi " + in.Name}}}, nil, nil
}
