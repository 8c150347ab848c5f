package core

import "time"

// Counts are what administrators see of the size of a site.
type Counts struct {
	Users, Players, Textures int64
	TextureBytes             int64
	Approximate              bool // whether one of these four is an estimate
	OpenReports, WaitingMail int64
	Uploads                  []DailyUploads // of the last 30 days, today's last
	Database                 string         // version of PostgreSQL
	Schema                   int32          // number of the last migration
}

// DailyUploads are the textures of a day in UTC that still exist.
type DailyUploads struct {
	Day     time.Time
	Uploads int64
}
