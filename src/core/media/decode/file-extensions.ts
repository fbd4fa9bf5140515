/** Usual extensions of files that the package decodes itself. */
const own =
  '3gp aac ac3 aif aifc aiff amr au avi caf dts eac3 flac m2ts m4a m4b m4v mka mkv mov mp3 mp4 mts oga ogg opus snd ' +
  'ts tta w64 wav webm wma wv'
/** Usual extensions of files that need ffmpeg. */
const foreign = 'ape dff dsf flv mpc mpeg mpg mxf ogv ra rm tak thd vob voc wmv'

/** Extensions that clients may offer to users. The content decides: files with other extensions are read as well. */
export function fileExtensions(hasFfmpeg: boolean): string[] {
  return [...own.split(' '), ...(hasFfmpeg ? foreign.split(' ') : [])]
}
