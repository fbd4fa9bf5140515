// With a bundler: import { separate } from 'stemwork/browser', without assets.
import { canSeparate, separate } from './stemwork/dist/browser/index.js'

const [input, progress, stop, output, list] = ['input', 'progress', 'button', 'output', 'ul'].map((name) =>
  document.querySelector(name),
)
const assets = { worker: new URL('stemwork/dist/browser/worker.js', document.baseURI) }

if (!canSeparate()) output.textContent = 'This browser cannot separate songs.'

input.addEventListener('change', () => void separateChosen())

async function separateChosen() {
  const [song] = input.files
  if (!song) return
  const controller = new AbortController()
  stop.onclick = () => controller.abort()
  progress.hidden = stop.hidden = false
  input.disabled = true
  output.textContent = ''
  try {
    const { stems, warnings } = await separate(song, {
      assets,
      signal: controller.signal,
      onProgress: (done) => (progress.value = done.progress),
    })
    output.textContent = warnings.join(' ')
    list.replaceChildren(...Object.values(stems).map(linkTo))
  } catch (error) {
    output.textContent = controller.signal.aborted ? 'Stopped.' : error.message
  } finally {
    progress.hidden = stop.hidden = true
    input.disabled = false
    input.value = ''
  }
}

function linkTo(file) {
  const link = Object.assign(document.createElement('a'), {
    href: URL.createObjectURL(file),
    download: file.name,
    textContent: file.name,
  })
  const item = document.createElement('li')
  item.append(link)
  return item
}
