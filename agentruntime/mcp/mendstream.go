package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"

	"agentsite/internal/lenientjson"
)

// mendStream reads a stream of events and mends the message in each. The source bounds its bytes.
type mendStream struct {
	in    *bufio.Reader
	mend  func([]byte) []byte
	begun bool
	name  string   // of the present event
	data  [][]byte // of the present event
	out   bytes.Buffer
	err   error

	// old is set for the stream of version 2024-11-05, of which only events are passed on that the SDK can read.
	old       bool
	addressed bool // the event with the address for messages was passed on
}

// passesOn reports whether the present event of an old stream is for the SDK, which takes the first event as the
// address for messages, and each other as a message. It takes an address out of quotes or an object.
func (m *mendStream) passesOn() bool {
	data := bytes.TrimSpace(bytes.Join(m.data, []byte("\n")))
	if m.addressed {
		return (m.name == "" || m.name == "message") && len(data) > 0 && (data[0] == '{' || data[0] == '[')
	}
	if m.name != "endpoint" {
		return false
	}
	var in members
	if json.Unmarshal(data, &in) == nil {
		for _, name := range []string{"uri", "url", "endpoint"} {
			if v, is := in[name]; is {
				data = v
				break
			}
		}
	}
	if text := ""; json.Unmarshal(data, &text) == nil {
		data = []byte(text)
	}
	m.data, m.addressed = [][]byte{data}, true
	return true
}

// readWhole reads an answer that is one JSON text, although its type is that of a stream, as one event. It returns
// false for a stream.
func (m *mendStream) readWhole() bool {
	first, _ := m.in.Peek(1)
	if len(first) == 0 || first[0] != '{' && first[0] != '[' {
		return false
	}
	whole, err := io.ReadAll(m.in)
	m.begun, m.err = true, err
	if err == nil {
		m.err = io.EOF
	}
	for _, line := range bytes.Split(m.mend(whole), []byte("\n")) {
		m.out.WriteString("data: ")
		m.out.Write(line)
		m.out.WriteByte('\n')
	}
	m.out.WriteByte('\n')
	return true
}

// Read implements io.Reader.
func (m *mendStream) Read(p []byte) (int, error) {
	for m.out.Len() == 0 {
		if m.err != nil {
			return 0, m.err
		}
		if !m.begun && m.readWhole() {
			break
		}
		line, err := m.in.ReadBytes('\n')
		m.err = err
		if !m.begun {
			line, m.begun = lenientjson.TrimMark(line), true
		}
		ended := len(line) > 0 && line[len(line)-1] == '\n'
		line = bytes.TrimRight(line, "\r\n")
		if name, ok := bytes.CutPrefix(line, []byte("event:")); ok {
			m.name = string(bytes.TrimSpace(name))
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			m.data = append(m.data, bytes.TrimPrefix(data, []byte(" ")))
			line, ended = nil, false
		}
		over := len(line) == 0 && ended || err != nil
		if m.old {
			if line, ended = nil, false; over && m.passesOn() {
				line, ended = []byte("event: "+m.name+"\n"), true
			} else if over {
				m.data = nil
			}
		}
		m.out.Write(line)
		if over && m.data != nil {
			m.writeData()
		}
		if over {
			m.name = ""
		}
		if ended {
			m.out.WriteByte('\n')
		}
	}
	return m.out.Read(p)
}

// writeData writes the data of the present event, mended.
func (m *mendStream) writeData() {
	if message := bytes.Join(m.data, []byte("\n")); len(bytes.TrimSpace(message)) > 0 {
		m.data = bytes.Split(m.mend(message), []byte("\n"))
	}
	for _, d := range m.data {
		m.out.WriteString("data: ")
		m.out.Write(d)
		m.out.WriteByte('\n')
	}
	m.data = nil
}
