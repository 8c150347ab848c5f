package stack

import (
	"bytes"
	"mime/multipart"

	"github.com/veneer-skins/veneer/shared/skin"
)

const boundary = "veneer"

// UploadType is the content type of a form that uploads a texture.
const UploadType = "multipart/form-data; boundary=" + boundary

// UploadForm returns the form that uploads a file as a texture of a type, as skin.Type names it.
func UploadForm(name, as string, file []byte) []byte {
	var body bytes.Buffer // writes to it never fail
	form := multipart.NewWriter(&body)
	_ = form.SetBoundary(boundary)
	part, _ := form.CreateFormFile("file", "texture.png")
	_, _ = part.Write(file)
	_ = form.WriteField("name", name)
	_ = form.WriteField("type", as)
	_ = form.Close()
	return body.Bytes()
}

// SheetForm returns the form that uploads a sheet.
func SheetForm(name string, as skin.Type, sheet skin.Sheet) []byte {
	file, _ := sheet.PNG() // without texels there is no file, which core rejects
	return UploadForm(name, as.String(), file)
}
