import { createReadStream, createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** Functions for the service's HTTP interface; they throw the errors that the service describes. */
export function client({ baseUrl, key }) {
  async function call(method, path, body) {
    const init = body
      ? { headers: { authorization: key, 'content-type': 'application/json' }, body: JSON.stringify(body) }
      : { headers: { authorization: key } }
    return (await checked(await fetch(baseUrl + path, { method, ...init }))).json()
  }

  return {
    application: () => call('GET', '/application'),
    createJob: (job) => call('POST', '/job', job),
    job: (id) => call('GET', `/job/${id}`),
    deleteJob: (id) => call('DELETE', `/job/${id}`),

    /** @returns the address to pass as an input URL */
    async upload(path) {
      const { uploadUrl, downloadUrl } = await call('GET', '/upload')
      const { size } = await stat(path)
      const body = Readable.toWeb(createReadStream(path))
      await checked(
        await fetch(uploadUrl, { method: 'PUT', body, duplex: 'half', headers: { 'content-length': String(size) } }),
      )
      return downloadUrl
    },

    async download(url, path) {
      const response = await checked(await fetch(url))
      await pipeline(Readable.fromWeb(response.body), createWriteStream(path))
    },
  }
}

async function checked(response) {
  if (response.ok) return response
  const { message } = await response.json().catch(() => ({}))
  throw new Error(`The service answered ${response.status}: ${message ?? response.statusText}`)
}
