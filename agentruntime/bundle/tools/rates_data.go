package tools

// RatesDay is the day of the rates below. They are the euro foreign exchange reference rates of the European Central
// Bank, which publishes them for information: units of a currency for one euro.
const RatesDay = "2026-10-30"

var rates = map[string]float64{
	"EUR": 1,
	"USD": 1.1172,
	"JPY": 175.68,
	"CZK": 24.353,
	"DKK": 7.4735,
	"GBP": 0.8338,
	"HUF": 366.33,
	"PLN": 4.4038,
	"RON": 5.3447,
	"SEK": 10.978,
	"CHF": 0.9194,
	"ISK": 136,
	"NOK": 10.312,
	"TRY": 55.8015,
	"AUD": 1.5904,
	"BRL": 6.0692,
	"CAD": 1.5606,
	"CNY": 7.4326,
	"HKD": 8.7652,
	"IDR": 20275.17,
	"ILS": 3.495,
	"INR": 106.084,
	"KRW": 1491.76,
	"MXN": 21.1237,
	"MYR": 4.5325,
	"NZD": 1.9823,
	"PHP": 71.143,
	"SGD": 1.4282,
	"THB": 37.683,
	"ZAR": 18.6455,
}
