package main

import "fmt"

func micro(v float64) string { return fmt.Sprintf("%.0f µs", v) }

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
