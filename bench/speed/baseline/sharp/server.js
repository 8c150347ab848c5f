'use strict';

// The usual way to draw avatars with Node: sharp behind Node's http server, in one
// process. It draws the front of the head with the hat over it, at
// /flat/<hash>?size=<pixels> as PNG with sharp's defaults. Nothing is cached between requests.
//
// Of several ways to do this with sharp it is the fastest: files are read into buffers,
// and layers are composited before they are scaled.

const { readFile } = require('node:fs/promises');
const http = require('node:http');
const path = require('node:path');
const sharp = require('sharp');

const [host, port, textures] = process.argv.slice(2);
const route = /^\/flat\/([0-9a-f]{64})\?size=([1-9][0-9]*)$/;

async function draw(hash, side) {
  const file = await readFile(path.join(textures, hash.slice(0, 2), `${hash}.png`));
  const texels = (file.readUInt32BE(16) / 64) * 8; // of the face, by the width in the header
  const front = { left: texels, top: texels, width: texels, height: texels };
  const hat = await sharp(file).ensureAlpha().extract({ ...front, left: 5 * texels }).raw().toBuffer();
  const face = await sharp(file)
    .extract(front)
    .removeAlpha() // of the result: faces are opaque
    .composite([{ input: hat, raw: { width: texels, height: texels, channels: 4 } }])
    .raw()
    .toBuffer({ resolveWithObject: true });
  return sharp(face.data, { raw: face.info }).resize(side, side, { kernel: 'nearest' }).png().toBuffer();
}

async function answer(request, response) {
  const [, hash, size] = route.exec(request.url) ?? [];
  if (!hash) {
    response.writeHead(404).end();
    return;
  }
  try {
    const picture = await draw(hash, Number(size));
    response.writeHead(200, { 'Content-Type': 'image/png', 'Content-Length': picture.length }).end(picture);
  } catch (error) {
    if (error.code !== 'ENOENT') console.error(error);
    response.writeHead(error.code === 'ENOENT' ? 404 : 500).end();
  }
}

const server = http.createServer(answer);
server.keepAliveTimeout = 3600e3; // connections wait while others are measured
server.listen(Number(port), host);
