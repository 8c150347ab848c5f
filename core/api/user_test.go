package api_test

import (
	"fmt"
	"testing"
)

func TestUser(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	f := func(want string) {
		t.Helper()
		c.get(t, "/api/user").is(t, 200, fmt.Sprintf(want, c.uid))
	}

	f(`{"uid":%d,"email":"user1@example.com","nickname":"Somebody","avatar":0,"score":0,"permission":0,` +
		`"last_sign_at":"2031-02-03 04:05:06","register_at":"<time>","verified":false}`)
	c.site.exec(t, `
		UPDATE users SET avatar = 7, score = 12345678901, permission = 2, verified = true, nickname = 'Zoë <&>',
			register_at = '2024-05-06 23:59:59.999+02'`)
	f(`{"uid":%d,"email":"user1@example.com","nickname":"Zoë <&>","avatar":7,"score":12345678901,"permission":2,` +
		`"last_sign_at":"2031-02-03 04:05:06","register_at":"2024-05-06 21:59:59","verified":true}`)
}
