// Package offer has the agents that were found at other addresses of a host than the one that a person gave. They are
// named in an error and offered on the form; nobody takes one of them unasked.
package offer

import (
	"agentsite/internal/agentkind"
	"agentsite/internal/fault"
)

// Agent is an agent that was found. Address is where a reader finds it again: the address of its card, or its own.
type Agent struct {
	Title   string
	Kind    agentkind.Kind
	Address string
}

// ElsewhereError says that no agent answers at an address, while others answer at other addresses of its host. It wraps
// an Invalid fault that names them.
type ElsewhereError struct {
	Address string
	Found   []Agent // one or more
	fault   error
}

// Elsewhere returns the ElsewhereError of an address.
func Elsewhere(address string, found []Agent) *ElsewhereError {
	text := "No agent answers at " + address + ". On the same host:"
	for i, a := range found {
		if i > 0 {
			text += ";"
		}
		text += " “" + a.Title + "” (" + agentkind.Of(a.Kind).Choice + ") at " + a.Address
	}
	return &ElsewhereError{Address: address, Found: found, fault: fault.Field("endpoint", text+".")}
}

// Error implements error.
func (e *ElsewhereError) Error() string { return e.fault.Error() }

// Unwrap returns the fault.
func (e *ElsewhereError) Unwrap() error { return e.fault }
