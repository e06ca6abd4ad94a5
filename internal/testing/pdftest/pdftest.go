// Package pdftest makes PDF files for tests, also hostile ones.
package pdftest

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
)

// File returns a file with one page for each text, of ASCII without brackets or backslashes. A text has lines.
func File(pages ...string) []byte {
	var contents [][]byte
	for _, text := range pages {
		var b strings.Builder
		b.WriteString("BT /F1 12 Tf 14 TL 72 720 Td\n")
		for line := range strings.SplitSeq(text, "\n") {
			fmt.Fprintf(&b, "(%s) Tj T*\n", line)
		}
		b.WriteString("ET")
		contents = append(contents, []byte(b.String()))
	}
	return FileOf(contents...)
}

// FileOf returns a file with one page for each content stream, which it compresses.
func FileOf(contents ...[]byte) []byte {
	objects := []string{"<< /Type /Catalog /Pages 2 0 R >>", "",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"}
	var kids []string
	for _, c := range contents {
		n := len(objects) + 1
		kids = append(kids, fmt.Sprintf("%d 0 R", n))
		packed := pack(c)
		objects = append(objects, fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "+
			"/Resources << /Font << /F1 3 0 R >> >> >>", n+1),
			fmt.Sprintf("<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream", len(packed), packed))
	}
	objects[1] = fmt.Sprintf("<< /Type /Pages /Count %d /Kids [%s] >>", len(kids), strings.Join(kids, " "))
	return Join(objects...)
}

// Join returns a file of numbered objects, the first of which is the catalog.
func Join(objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n")
	var offsets []int
	for i, o := range objects {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, at := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, start)
	return b.Bytes()
}

func pack(b []byte) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	_, _ = w.Write(b) // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}
