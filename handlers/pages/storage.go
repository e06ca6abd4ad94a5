package pages

import (
	"agentsite/internal/quota"
	"agentsite/templates"
)

// StorageView shows stored bytes and their limits.
func StorageView(u quota.Usage) templates.StorageView {
	v := templates.StorageView{Used: quota.Text(u.Total), Today: quota.Text(u.Today),
		UsedPercent: percent(u.Total, u.Bound.Total), TodayPercent: percent(u.Today, u.Bound.Daily)}
	if u.Bound.Total > 0 {
		v.Limit = quota.Text(u.Bound.Total)
	}
	if u.Bound.Daily > 0 {
		v.DailyLimit = quota.Text(u.Bound.Daily)
	}
	return v
}

// percent returns the part of n in all, from 0 to 100.
func percent(n, all int64) int {
	if all <= 0 {
		return 0
	}
	return int(min(float64(n)/float64(all)*100, 100))
}
