package pdf_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"agentsite/agentruntime/pdf"
	"agentsite/agentruntime/pdf/child"
	"agentsite/internal/testing/pdftest"
	"agentsite/internal/testing/racetest"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == child.Argument {
		os.Exit(child.Run())
	}
	os.Exit(m.Run())
}

func newReader(t *testing.T) *pdf.Reader {
	t.Helper()
	r := pdf.New(pdf.Config{Command: []string{os.Args[0], child.Argument}, Folder: t.TempDir(),
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	t.Cleanup(r.Close)
	return r
}

func textOf(ctx context.Context, r *pdf.Reader, b []byte) (string, error) {
	return r.Text(ctx, "ada", bytes.NewReader(b), int64(len(b)))
}

// The text of all pages is read in their order; after each hostile file the reader still reads others.
func TestText_OfGoodAndHostileFiles(t *testing.T) {
	racetest.Skip(t) // compiling the engine takes minutes there
	r := newReader(t)
	good := pdftest.File("Invoice 4711\nTotal: 84.60", "Second page")
	check := func(after string) {
		t.Helper()
		got, err := textOf(t.Context(), r, good)
		if err != nil || got != "Invoice 4711\nTotal: 84.60\n\nSecond page" {
			t.Fatalf("after %s: %q, %v", after, got, err)
		}
	}
	check("the start")
	nested := strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000)
	zeros := make([]byte, 512<<20)
	for name, b := range map[string][]byte{
		"no PDF":             []byte("Just a text.\n"),
		"only a header":      []byte("%PDF-1.7\n"),
		"an empty page tree": pdftest.Join("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 0 /Kids [] >>"),
		"a page tree in a circle": pdftest.Join("<< /Type /Catalog /Pages 2 0 R >>",
			"<< /Type /Pages /Count 1000000 /Kids [2 0 R 2 0 R] >>"),
		"an object in itself":        pdftest.Join("1 0 R"),
		"nested arrays":              pdftest.Join("<< /Type /Catalog /Pages 2 0 R /X "+nested+" >>", nested),
		"a page that grows":          pdftest.FileOf(zeros),
		"a page that grows twice":    pdftest.FileOf(bytes.Repeat([]byte("BT /F1 1 Tf (a) Tj ET\n"), 4<<20)),
		"a false length of a stream": bytes.Replace(good, []byte("/Length "), []byte("/Length 9999999"), 1),
	} {
		got, err := textOf(t.Context(), r, b)
		if err != nil && !errors.Is(err, pdf.ErrNoText) {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %d bytes, %v", name, len(got), err)
		check(name)
	}
	for n := len(good) - 1; n > 0; n -= 1 + len(good)/20 {
		if _, err := textOf(t.Context(), r, good[:n]); err != nil && !errors.Is(err, pdf.ErrNoText) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	check("truncated files")
	var pages []string
	for i := range 700 {
		pages = append(pages, fmt.Sprintf("Page %d", i)+strings.Repeat("\nmany words here and there", 20))
	}
	got, err := textOf(t.Context(), r, pdftest.File(pages...))
	if err != nil || len(got) != child.MaxText || !strings.HasPrefix(got, "Page 0\nmany words") {
		t.Errorf("a long file: %d bytes, %v", len(got), err)
	}
	if _, err := r.Text(t.Context(), "ada", bytes.NewReader(nil), child.MaxFile+1); !errors.Is(err, pdf.ErrNoText) {
		t.Errorf("a large file: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := textOf(ctx, r, good); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled call: %v", err)
	}
	check("a canceled call")
}
