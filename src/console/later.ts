/** Everything beyond the first view, in one script: several would share so much that each would be split up. */
export { SongPage } from './song/job-page.js'
export { keepFocus } from './elements/keep-focus.js'
export { KeysPage } from './keys/keys-page.js'
export { MiniWaveform } from './pictures/mini-waveform.js'
export { OptionCount, OptionFields } from './options/option-fields.js'
export { LinkSignIn } from './session/link-sign-in.js'
export { SignIn } from './session/sign-in.js'
export { LinkedJob } from './song/linked-job.js'
export { OfflinePage } from './song/offline-page.js'
export { BulkActions } from './jobs/bulk-actions.js'
export { UploadList } from './uploads/upload-row.js'
export { UploadQueue } from './uploads/upload-queue.js'
export { repeatJobs, saveArchive, stopJobs } from './jobs/job-requests.js'
export { applicationOfCode, keyEnded, linkEnded, signIn, signOut } from './session/session-requests.js'
export { explain } from './words/words.js'
export { checkOffline, forgetAllOffline, forgetOffline } from './song/offline-songs.js'

const style = document.createElement('link')
style.rel = 'stylesheet'
style.href = new URL('later-style.css', import.meta.url).href
// Without the style sheet, everything still works.
await new Promise((resolve) => {
  style.onload = style.onerror = resolve
  document.head.append(style)
})
