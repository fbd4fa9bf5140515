/** What is not shown first, as one script: more scripts would share so much that each would come in pieces. */
export { JobPage } from './job-page.js'
export { KeysPage } from './keys-page.js'
export { MiniWaveform } from './mini-waveform.js'
export { ParamInput } from './param-input.js'
export { LinkSignIn } from './link-sign-in.js'
export { SignIn } from './sign-in.js'
export { LinkedJob } from './linked-job.js'
export { OfflinePage } from './offline-page.js'
export { checkOffline, forgetAllOffline, forgetOffline } from './offline-songs.js'

const style = document.createElement('link')
style.rel = 'stylesheet'
style.href = new URL('later-style.css', import.meta.url).href
// Without it, everything is there all the same.
await new Promise((resolve) => {
  style.onload = style.onerror = resolve
  document.head.append(style)
})
