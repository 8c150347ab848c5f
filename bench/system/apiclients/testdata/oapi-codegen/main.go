// Program client registers at a site, uploads a texture, finds it in the closet and fetches its
// avatar, with the client that oapi-codegen generates from the API document. Its arguments are the
// site's URL and a PNG file.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"mime/multipart"
	"net/http"
	"os"

	"client/veneer"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, site, file string) error {
	anonymous, err := veneer.NewClientWithResponses(site)
	if err != nil {
		return err
	}
	const email, password = "gopher@example.com", "correct horse"
	registered, err := anonymous.RegisterWithResponse(ctx, veneer.RegisterJSONRequestBody{Email: email, Password: password, Nickname: "Gopher"})
	if err != nil || registered.JSON200 == nil {
		return fmt.Errorf("register: %v %s", err, registered.Body)
	}
	login, err := anonymous.LoginWithResponse(ctx, veneer.LoginJSONRequestBody{Email: email, Password: password})
	if err != nil || login.JSON200 == nil {
		return fmt.Errorf("log in: %v %s", err, login.Body)
	}
	token := login.JSON200.Token
	user, err := veneer.NewClientWithResponses(site, veneer.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+token)
		return nil
	}))
	if err != nil {
		return err
	}

	content, err := os.Open(file)
	if err != nil {
		return err
	}
	defer content.Close()
	kind, form, err := upload(content, "Traveller", veneer.UploadFieldsTypeSkin)
	if err != nil {
		return err
	}
	uploaded, err := user.UploadTextureWithBodyWithResponse(ctx, kind, form)
	if err != nil || uploaded.JSON200 == nil {
		return fmt.Errorf("upload: %v %s", err, uploaded.Body)
	}
	texture := uploaded.JSON200.Data

	category := veneer.ListClosetItemsParamsCategorySkin
	closet, err := user.ListClosetItemsWithResponse(ctx, &veneer.ListClosetItemsParams{Category: &category})
	if err != nil || closet.JSON200 == nil || len(closet.JSON200.Data) != 1 || closet.JSON200.Data[0].Pivot.ItemName != "Traveller" {
		return fmt.Errorf("list the closet: %v %s", err, closet.Body)
	}

	size, png := veneer.AvatarSize(64), veneer.AsPNG("1")
	head, err := anonymous.GetAvatarWithResponse(ctx, texture.Tid, &veneer.GetAvatarParams{Size: &size, Png: &png})
	if err != nil || head.StatusCode() != http.StatusOK || !bytes.HasPrefix(head.Body, []byte("\x89PNG")) {
		return fmt.Errorf("fetch the head: %v %s", err, head.Body)
	}
	fmt.Printf("texture %d, a head of %d bytes\n", texture.Tid, len(head.Body))
	return nil
}

func upload(file io.Reader, name veneer.TextureName, kind veneer.UploadFieldsType) (contentType string, form io.Reader, err error) {
	var body bytes.Buffer
	parts := multipart.NewWriter(&body)
	part, err := parts.CreateFormFile("file", "skin.png")
	if err != nil {
		return "", nil, err
	}
	if _, err := io.Copy(part, file); err != nil {
		return "", nil, err
	}
	for field, value := range map[string]string{"name": name, "type": string(kind)} {
		if err := parts.WriteField(field, value); err != nil {
			return "", nil, err
		}
	}
	return parts.FormDataContentType(), &body, parts.Close()
}
