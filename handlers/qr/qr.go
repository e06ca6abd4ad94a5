// Package qr draws a text as a QR code that cameras can read on any background. It does not interpret the
// text; pages that show a code also show the text, because not every reader has a camera.
package qr

import (
	"fmt"
	"image/color"
	"strconv"

	"github.com/boombuler/barcode/qr"
)

// MaxText bounds the text, in bytes: the squares of a longer code are too small for a hand-held
// phone.
const MaxText = 1000

// quiet is the width of the light border around a code, in squares (ISO/IEC 18004).
const quiet = 4

// SVG returns the QR code of a text as an SVG picture without a fixed size. It is black on white
// regardless of the page's colours, because many cameras read no other. A text that is empty or longer
// than MaxText is an error.
func SVG(text string) ([]byte, error) {
	if text == "" || len(text) > MaxText {
		return nil, fmt.Errorf("draw a code of %d bytes: 1 to %d are possible", len(text), MaxText)
	}
	code, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		return nil, fmt.Errorf("draw a code: %w", err)
	}
	size := code.Bounds().Dx()
	side := strconv.Itoa(size + 2*quiet)
	b := []byte(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ` + side + " " + side +
		`" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h` + side + "v" + side + `H0z"/><path d="`)
	for y := range size {
		for x := 0; x < size; x++ {
			from := x
			for x < size && code.At(x, y) == color.Black {
				x++
			}
			if n := x - from; n > 0 {
				b = fmt.Appendf(b, "M%d %dh%dv1h-%dz", from+quiet, y+quiet, n, n)
			}
		}
	}
	return append(b, `"/></svg>`...), nil
}
