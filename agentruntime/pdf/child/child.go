// Package child is the child process that reads the text of PDF files. The portal starts its own binary with the
// argument Argument; the process is locked down and talks to the portal like that of a hosted program, see packages
// frame and guest. PDFium runs in it as WebAssembly, in a fresh instance for each file, without files or clocks.
package child

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"agentsite/agentruntime/wasm/frame"
	"agentsite/agentruntime/wasm/guest"
)

const (
	// Argument is the argument with which the portal's binary becomes such a process.
	Argument = "read-pdf"
	// Engine is the content of the Module frame that loads PDFium. With another one the process answers no call.
	Engine = "pdfium"
	// ReadFunction is the function of the portal that returns the bytes of the file from an offset on, which is its
	// argument in decimal: at most Chunk of them.
	ReadFunction = "read"
	Chunk        = 512 << 10
	// MaxFile bounds a file, MaxText its text in bytes and maxPages its pages. The rest is not read.
	MaxFile  = 32 << 20
	MaxText  = 256 << 10
	maxPages = 5000
)

// Input is the input of a call.
type Input struct {
	Size int64 `json:"size"` // of the file, in bytes
}

// Run serves calls until the input ends, and returns the exit status. The output of a call is the text of the file.
func Run() int { return guest.Serve(load) }

// reader implements guest.Program.
type reader struct{ engine pdfium.Pool }

func load(module []byte, set frame.Settings) (guest.Program, error) {
	if string(module) != Engine {
		return reader{}, nil // the portal finds out whether processes can be locked down
	}
	conf := wazero.NewRuntimeConfig().WithMemoryLimitPages(set.Pages).WithDebugInfoEnabled(false).
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling)
	if set.Cache != "" {
		// Without the cache the engine is compiled, which only takes longer.
		if cache, err := wazero.NewCompilationCacheWithDir(set.Cache); err == nil {
			conf = conf.WithCompilationCache(cache)
		}
	}
	engine, err := webassembly.Init(webassembly.Config{MaxTotal: 1, FSConfig: wazero.NewFSConfig(), RuntimeConfig: conf,
		Stdout: io.Discard, Stderr: io.Discard})
	return reader{engine}, err
}

// Prepare implements guest.Program: instances are cheap.
func (reader) Prepare() {}

// Run implements guest.Program.
func (r reader) Run(ctx context.Context, c *guest.Call, s frame.Start) (frame.Status, []byte) {
	file, err := receiveFile(ctx, c, s.Input)
	if err == nil {
		var text string
		if text, err = r.readText(file); err == nil {
			return frame.OK, []byte(text)
		}
	}
	return frame.Failed, []byte(err.Error())
}

// receiveFile gets the file from the portal.
func receiveFile(ctx context.Context, c *guest.Call, input []byte) ([]byte, error) {
	var in Input
	if err := json.Unmarshal(input, &in); err != nil || in.Size <= 0 || in.Size > MaxFile {
		return nil, errors.New("the size of the file cannot be used")
	}
	file := make([]byte, 0, in.Size)
	for int64(len(file)) < in.Size {
		part, status := c.Ask(ctx, ReadFunction, strconv.AppendInt(nil, int64(len(file)), 10))
		if status != frame.OK || len(part) == 0 || int64(len(file)+len(part)) > in.Size {
			return nil, errors.New("the file could not be read")
		}
		file = append(file, part...)
	}
	return file, nil
}

// readText returns the text of the pages, up to MaxText bytes.
func (r reader) readText(file []byte) (string, error) {
	if r.engine == nil {
		return "", errors.New("the engine is not loaded")
	}
	in, err := r.engine.GetInstance(time.Minute)
	if err != nil {
		return "", err
	}
	defer func() { _ = in.Close() }() // an instance that does not close costs memory, which is bounded
	doc, err := in.OpenDocument(&requests.OpenDocument{File: &file})
	if err != nil {
		return "", err
	}
	count, err := in.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: doc.Document})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i := 0; i < min(count.PageCount, maxPages) && b.Len() < MaxText; i++ {
		page, err := in.GetPageText(&requests.GetPageText{Page: requests.Page{
			ByIndex: &requests.PageByIndex{Document: doc.Document, Index: i}}})
		if err != nil {
			continue // other pages may be whole
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(cleanText(page.Text))
	}
	text := b.String()
	return strings.ToValidUTF8(text[:min(len(text), MaxText)], ""), nil
}

// PDFium writes lines with CRLF, and this mark instead of a hyphen at the end of a line.
const hyphen = "\ufffe"

// cleanText returns the text of a page without PDFium's marks; words that were divided at the end of a line are whole.
func cleanText(s string) string {
	s = strings.NewReplacer(hyphen+"\r\n", "", hyphen+"\n", "", hyphen, "-", "\r\n", "\n").Replace(s)
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == '\uffff' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}
