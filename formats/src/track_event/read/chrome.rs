//! The processes and threads of Chrome, whose descriptors have a type instead of a name. The names are those
//! that trace_processor shows.

use crate::proto::{FieldValue, Fields};

/// The field of `ChromeProcessDescriptor` and `ChromeThreadDescriptor` with the type.
const TYPE: u32 = 1;

/// `ChromeProcessDescriptor.ProcessType`.
const PROCESSES: [&str; 42] = [
    "",
    "Browser",
    "Renderer",
    "Utility",
    "SandboxHelper",
    "PROCESS_SANDBOX_HELPER",
    "Gpu",
    "PpapiPlugin",
    "PpapiBroker",
    "Service: network.mojom.NetworkService",
    "Service: tracing.mojom.TracingService",
    "Service: storage.mojom.StorageService",
    "Service: audio.mojom.AudioService",
    "Service: data_decoder.mojom.DataDecoderService",
    "Service: chrome.mojom.UtilWin",
    "Service: proxy_resolver.mojom.ProxyResolverFactory",
    "Service: media.mojom.CdmServiceBroker",
    "Service: video_capture.mojom.VideoCaptureService",
    "Service: unzip.mojom.Unzipper",
    "Service: mirroring.mojom.MirroringService",
    "Service: patch.mojom.FilePatcher",
    "Service: chromeos.tts.mojom.TtsService",
    "Service: printing.mojom.PrintingService",
    "Service: quarantine.mojom.Quarantine",
    "Service: chromeos.local_search_service.mojom.LocalSearchService",
    "Service: chromeos.assistant.mojom.AssistantAudioDecoderFactory",
    "Service: chrome.mojom.FileUtilService",
    "Service: printing.mojom.PrintCompositor",
    "Service: paint_preview.mojom.PaintPreviewCompositorCollection",
    "Service: media.mojom.SpeechRecognitionService",
    "Service: device.mojom.XRDeviceService",
    "Service: chrome.mojom.UtilReadIcon",
    "Service: language_detection.mojom.LanguageDetectionService",
    "Service: sharing.mojom.Sharing",
    "Service: chrome.mojom.MediaParserFactory",
    "Service: qrcode_generator.mojom.QRCodeService",
    "Service: chrome.mojom.ProfileImport",
    "Service: chromeos.ime.mojom.ImeService",
    "Service: recording.mojom.RecordingService",
    "Service: shape_detection.mojom.ShapeDetectionService",
    "Extension Renderer",
    "Service: media.mojom.MediaFoundationServiceBroker",
];

/// `ChromeThreadDescriptor.ThreadType`.
const THREADS: [&str; 53] = [
    "",
    "CrProcessMain",
    "ChromeIOThread",
    "ThreadPoolBackgroundWorker&",
    "ThreadPoolForegroundWorker&",
    "ThreadPoolSingleThreadForegroundBlocking&",
    "ThreadPoolSingleThreadBackgroundBlocking&",
    "ThreadPoolService",
    "Compositor",
    "VizCompositorThread",
    "CompositorTileWorker&",
    "ServiceWorkerThread&",
    "NetworkService",
    "Chrome_ChildIOThread",
    "Chrome_IOThread",
    "CrBrowserMain",
    "CrRendererMain",
    "CrUtilityMain",
    "CrGpuMain",
    "CacheThread_BlockFile",
    "Media",
    "AudioOutputDevice",
    "AudioInputDevice",
    "GpuMemoryThread",
    "GpuVSyncThread",
    "DXVAVideoDecoderThread",
    "BrowserWatchdog",
    "WebRTC_Network",
    "Window owner thread",
    "WebRTC_Signaling",
    "WebRTC_Worker",
    "CrPPAPIMain",
    "GpuWatchdog",
    "swapper",
    "Gamepad polling thread",
    "WebCrypto",
    "Database thread",
    "Proxy Resolver",
    "Chrome_DevToolsADBThread",
    "NetworkConfigWatcher",
    "wasapi_render_thread",
    "LoaderLockSampler",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "MemoryInfra",
    "StackSamplingProfiler",
    "CompositorGpuThread",
];

/// The name of a process, from its `ChromeProcessDescriptor`.
pub(super) fn process(message: Fields<'_>) -> Option<&'static str> {
    name(&PROCESSES, message)
}

/// The name of a thread, from its `ChromeThreadDescriptor`.
pub(super) fn thread(message: Fields<'_>) -> Option<&'static str> {
    name(&THREADS, message)
}

fn name(names: &[&'static str], message: Fields<'_>) -> Option<&'static str> {
    let mut of_type = None;
    for field in message.map_while(Result::ok) {
        if let (TYPE, FieldValue::Varint(value)) = (field.number, field.value) {
            of_type = usize::try_from(value).ok().and_then(|value| names.get(value)).copied();
        }
    }
    of_type.filter(|name| !name.is_empty())
}
