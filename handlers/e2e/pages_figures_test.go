package e2e

import (
	"slices"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
)

// BenchmarkPages opens the main pages of a portal in a browser and measures the time from the request to the first
// byte, and to the first paint of content. Run it with -benchtime 20x.
func BenchmarkPages(b *testing.B) {
	root := needBrowser(b)
	p := apptest.Start(b)
	op := p.Operator(b, "op")
	for name, s := range map[string]screen{"desk": desk, "phone": screens["phone"]} {
		for _, path := range []string{"/", "/agents", "/agents/calc", "/network", "/agents/new", "/account", "/admin", "/admin/settings"} {
			b.Run(name+strings.ReplaceAll(path, "/", "_"), func(b *testing.B) {
				x := visit(b, root, p, s).as(op)
				x.open(path) // scripts and styles are in the cache from now on
				var first, paint []float64
				for range b.N {
					x.open(path)
					x.until("a paint", `performance.getEntriesByName("first-contentful-paint").length > 0`)
					first = append(first, eval[float64](x, `(() => {
						const e = performance.getEntriesByType("navigation")[0];
						return e.responseStart - e.requestStart;
					})()`))
					paint = append(paint, eval[float64](x, `performance.getEntriesByName("first-contentful-paint")[0].startTime`))
				}
				slices.Sort(first)
				slices.Sort(paint)
				b.ReportMetric(first[len(first)/2], "p50-ms/first-byte")
				b.ReportMetric(first[len(first)*9/10], "p90-ms/first-byte")
				b.ReportMetric(paint[len(paint)/2], "p50-ms/paint")
			})
		}
	}
}
